package node

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// total returns the sum of all drops.
func total(c control.Counters) (n uint64) {
	for _, d := range c.Drops {
		n += d.Packets
	}
	return n
}

// Each packet is accounted for: the link drops it for a counted reason, it is queued, or the other
// end receives it.
func TestEveryPacketIsAccountedFor(t *testing.T) {
	p := freePorts(t, 2)
	text := `interface if0 10.0.0.%d/24 127.0.0.1:%d
neighbor 10.0.0.%d at 127.0.0.1:%d via if0
`
	a := start(t, Config{Seed: 3}, "A", fmt.Sprintf(text, 1, p[0], 2, p[1])+
		"impair if0 out loss 2% duplicate 3% delay 200us 100us rate 200mbit limit 8\n"+
		"impair if0 in loss 1%\n")
	b := start(t, Config{}, "B", fmt.Sprintf(text, 2, p[1], 1, p[0]))
	client, server := connect(t, a, b, "10.0.0.2:80")
	exchange(t, client, server, 400_000)
	require.NoError(t, client.Close())
	require.NoError(t, server.Close())
	// The link's delay is below 1 ms, so it is empty soon after the last packet.
	settled := func() bool {
		list := ask(t, a, control.Impairments{})
		over := list[0].Inside == 0 && list[1].Inside == 0
		for _, n := range []*Node{a, b} {
			for _, s := range ask(t, n, control.Sockets{}) {
				over = over && s.State == "TIME_WAIT"
			}
		}
		fa, fb := ask(t, a, control.Interfaces{})[0], ask(t, b, control.Interfaces{})[0]
		return over && fa.Device.OutPackets == fb.Device.InPackets &&
			fb.Device.OutPackets == fa.Device.InPackets // the kernel's loopback has delivered every datagram
	}
	require.Eventually(t, settled, 20*time.Second, 5*time.Millisecond)
	fa, fb := ask(t, a, control.Interfaces{})[0], ask(t, b, control.Interfaces{})[0]
	ways := ask(t, a, control.Impairments{})
	out, in := ways[0], ways[1]
	assert.NotZero(t, out.Lost)
	assert.NotZero(t, out.Duplicated)
	assert.NotZero(t, out.QueueDropped)
	for _, w := range ways {
		assert.Equal(t, w.Seen+w.Duplicated,
			w.Passed+w.Lost+w.QueueDropped+w.Overflowed+uint64(w.Inside), w.Way)
	}
	assert.Equal(t, fa.Out.Packets, out.Seen, "each packet that IP sends enters the link")
	assert.Equal(t, total(fa.Out), out.Lost+out.QueueDropped)
	assert.Equal(t, fa.Device.OutPackets, out.Passed,
		"each packet that leaves the link goes to the kernel")
	assert.Equal(t, fa.Device.OutPackets, fb.Device.InPackets,
		"the kernel's loopback loses nothing")
	assert.Equal(t, fa.Device.OutBytes, fb.Device.InBytes)
	assert.Equal(t, fb.In.Packets, fb.Device.InPackets)
	assert.Equal(t, fb.In.Bytes, fb.Device.InBytes)
	assert.Equal(t, fb.Out.Packets, fb.Device.OutPackets)
	assert.Equal(t, fb.Device.OutPackets, fa.Device.InPackets)
	assert.Equal(t, fa.Device.InPackets, in.Seen)
	assert.Equal(t, in.Passed, fa.In.Packets)
	assert.Equal(t, fa.In.Packets+in.Lost, fb.Out.Packets)
}

// An interface that is down drops packets in both directions and counts them by reason. A
// connection over it waits until it is up again.
func TestDownAndUp(t *testing.T) {
	p := freePorts(t, 2)
	text := `interface if0 10.0.0.%d/24 127.0.0.1:%d
neighbor 10.0.0.%d at 127.0.0.1:%d via if0
`
	a := start(t, Config{}, "A", fmt.Sprintf(text, 1, p[0], 2, p[1]))
	b := start(t, Config{}, "B", fmt.Sprintf(text, 2, p[1], 1, p[0]))
	client, server := connect(t, a, b, "10.0.0.2:80")
	exchangeWord(t, client, server)

	told := make(chan bool, 9)
	defer a.Watch(func(e control.Event) {
		if l, ok := e.(control.LinkChanged); ok {
			told <- l.Interface.Up
		}
	})()
	assert.False(t, ask(t, a, control.SetLink{Iface: "0"}).Up)
	assert.False(t, ask(t, a, control.SetLink{Iface: "0"}).Up, "the interface is already down")
	assert.Empty(t, ask(t, a, control.Routes{}), "the route to its network is gone")
	assert.Empty(t, ask(t, a, control.Neighbors{}))
	_, err := a.Do(t.Context(), control.SendTest{Addr: netip.MustParseAddr("10.0.0.2"), Text: "x"})
	require.ErrorIs(t, err, control.ErrNoRoute)
	_, err = server.Write([]byte("while it is down"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		drops := ask(t, a, control.Interfaces{})[0].In.Drops
		return len(drops) == 1 && drops[0].Reason == "interface down"
	}, 10*time.Second, 5*time.Millisecond)
	assert.Equal(t, "ESTABLISHED", ask(t, a, control.Sockets{})[0].State)

	assert.True(t, ask(t, a, control.SetLink{Iface: "if0", Up: true}).Up)
	assert.False(t, <-told)
	assert.True(t, <-told)
	require.NoError(t, client.SetReadDeadline(time.Now().Add(20*time.Second)))
	buf := make([]byte, 100)
	n, err := client.Read(buf)
	require.NoError(t, err)
	assert.Equal(t, "while it is down", string(buf[:n]))
	exchangeWord(t, client, server)
}

// exchangeWord sends a word from a to b and receives it back.
func exchangeWord(t *testing.T, a, b *Conn) {
	t.Helper()
	buf := make([]byte, 10)
	for _, way := range [][2]*Conn{{a, b}, {b, a}} {
		_, err := way[0].Write([]byte("word"))
		require.NoError(t, err)
		n, err := way[1].Read(buf)
		require.NoError(t, err)
		require.Equal(t, "word", string(buf[:n]))
	}
}
