package rcp_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rcp"
)

// A server receives 100,000 opening packets with forged sources. Clients that connect during the
// flood and after it get sessions, and the forged ones never use more than MaxSessions.
func TestClientsConnectDuringAFlood(t *testing.T) {
	const (
		forged, perStep = 100_000, 20
		step, delay     = time.Millisecond, 10 * time.Millisecond
		clients         = 200
	)
	server := newRouter(t, rcp.Config{})
	require.NoError(t, server.Listen(10))
	type packet struct {
		at   clock.Time
		from netip.AddrPort
		b    []byte
	}
	type client struct {
		*rcp.Router
		addr netip.AddrPort
	}
	var upward, downward []packet
	var ends []client
	byAddr := map[netip.AddrPort]*rcp.Router{}
	var accepted []*rcp.Socket
	rng := rand.New(rand.NewPCG(1, 2))
	now, sent := clock.Time(1), 0
	arrive := func(queue []packet, to func(packet)) []packet {
		for len(queue) > 0 && queue[0].at <= now {
			to(queue[0])
			queue = queue[1:]
		}
		return queue
	}
	sendRound := func(r *rcp.Router, f func(d rcp.Datagram)) {
		r.Advance(now)
		var d rcp.Datagram
		for r.Output(now, &d) {
			f(rcp.Datagram{Peer: d.Peer, Data: append([]byte(nil), d.Data...)})
		}
	}
	const steps = 2 * forged / perStep
	for n := range steps + 4000 {
		honest := rng.IntN(perStep) // other packets may come before the flood
		for i := range perStep {
			if i == honest {
				upward = arrive(upward, func(p packet) { server.Input(now, p.from, p.b) })
			}
			if sent < forged {
				sent++
				addr := netip.AddrFrom4([4]byte{172, 16, byte(sent >> 8), byte(sent)})
				server.Input(now, netip.AddrPortFrom(addr, uint16(1+sent>>16)), dat(0, ""))
			}
		}
		downward = arrive(downward, func(p packet) { byAddr[p.from].Input(now, serverAddr, p.b) })
		if n%(steps/clients) == 0 && len(ends) < clients {
			c := client{newRouter(t, rcp.Config{}), netip.AddrPortFrom(clientAddr.Addr(), uint16(1+len(ends)))}
			s, err := c.Connect(now, serverAddr)
			require.NoError(t, err)
			s.Tx().Write([]byte("hello"))
			ends, byAddr[c.addr] = append(ends, c), c.Router
		}
		for s, ok := server.Accept(); ok; s, ok = server.Accept() {
			accepted = append(accepted, s)
		}
		for _, c := range ends {
			sendRound(c.Router, func(d rcp.Datagram) {
				upward = append(upward, packet{now.Add(delay), c.addr, d.Data})
			})
		}
		sendRound(server, func(d rcp.Datagram) {
			if byAddr[d.Peer] != nil {
				downward = append(downward, packet{now.Add(delay), d.Peer, d.Data})
			}
		})
		if n%10 == 0 {
			require.LessOrEqual(t, len(slices.Collect(server.Sockets())), 1024)
		}
		now = now.Add(step)
	}
	served := 0
	for _, s := range accepted {
		if s.Rx().Len() == len("hello") {
			served++
		}
	}
	require.Equal(t, forged, sent)
	assert.GreaterOrEqual(t, served, clients*99/100, "of %d clients", clients)
}
