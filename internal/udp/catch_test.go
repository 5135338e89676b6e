package udp_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/udp"
)

// hold delivers a datagram without a socket.
func hold(h *udp.Host, from, to, text string) udp.Verdict {
	src, dst := at(from).Addr().As4(), at(to).Addr().As4()
	header := udp.Header{SrcPort: at(from).Port(), DstPort: at(to).Port()}
	b := header.Append(nil, netip.AddrFrom4(src), netip.AddrFrom4(dst), []byte(text))
	a := udp.Arrival{Src: netip.AddrFrom4(src), Dst: netip.AddrFrom4(dst)}
	if v := h.Input(a, b); v != udp.NoPort {
		return v
	}
	return h.Hold(a, b, append([]byte("IP header"), b...))
}

func TestAdmittedFlowHasItsOwnSocket(t *testing.T) {
	h := newHost(0)
	assert.Equal(t, udp.NoPort, hold(h, "10.0.0.1:9", "8.8.8.8:53", "catching is off"))
	h.Catch(2)
	assert.Equal(t, udp.NoPort, hold(h, "10.0.0.1:0", "8.8.8.8:53", "no source port"))
	require.Equal(t, udp.Delivered, hold(h, "10.0.0.1:9", "8.8.8.8:53", "one"))
	require.Equal(t, udp.Delivered, hold(h, "10.0.0.1:9", "8.8.8.8:53", "two"))
	require.Equal(t, udp.Delivered, hold(h, "10.0.0.5:9", "8.8.8.8:53", "another"))
	f, ok := h.NextCaught()
	require.True(t, ok)
	assert.Equal(t, udp.Flow{Local: at("8.8.8.8:53"), Remote: at("10.0.0.1:9")}, f)
	s, ok := h.Admit(f)
	require.True(t, ok)
	_, ok = h.Admit(f)
	assert.False(t, ok, "the flow no longer waits")
	assert.True(t, s.Admitted())
	assert.ErrorIs(t, s.Connect(at("10.0.0.6:9")), udp.ErrAddress, "it stays with its peer")
	assert.Equal(t, "10.0.0.1:9 one", take(s))
	assert.Equal(t, "10.0.0.1:9 two", take(s))
	assert.Equal(t, udp.Delivered, hold(h, "10.0.0.1:9", "8.8.8.8:53", "three"))
	assert.Equal(t, "10.0.0.1:9 three", take(s))

	// RFC 1122 §4.1.3.3: the flow receives the ICMP error.
	h.Report(at("8.8.8.8:53"), at("10.0.0.1:9"), udp.ErrRefused)
	assert.ErrorIs(t, s.TakeError(), udp.ErrRefused)
	// A socket that is bound to the same address receives the datagrams of all other peers.
	bound := bind(t, h, "8.8.8.8:53")
	assert.Equal(t, udp.Delivered, hold(h, "10.0.0.1:9", "8.8.8.8:53", "four"))
	assert.Equal(t, udp.Delivered, hold(h, "10.0.0.7:9", "8.8.8.8:53", "stranger"))
	assert.Equal(t, "10.0.0.1:9 four", take(s))
	assert.Equal(t, "10.0.0.7:9 stranger", take(bound))
	s.Close()
	s.Close()
	assert.Equal(t, udp.Delivered, hold(h, "10.0.0.1:9", "8.8.8.8:53", "five"))
	assert.Equal(t, "10.0.0.1:9 five", take(bound), "the bound socket still receives")

	f, ok = h.NextCaught()
	require.True(t, ok)
	assert.Equal(t, at("10.0.0.5:9"), f.Remote)
	packet := h.Dismiss(f)
	assert.True(t, strings.HasSuffix(string(packet), "another"))
	assert.Nil(t, h.Dismiss(f))
	_, ok = h.Admit(f)
	assert.False(t, ok)
}

// During a flood of flows, or of a flow's datagrams, memory stays within the documented limits.
func TestHeldDatagramsAreBounded(t *testing.T) {
	h := newHost(0)
	h.Catch(100)
	text := strings.Repeat("x", 1000)
	counts := map[udp.Verdict]int{}
	for flow := range 200 {
		for range 6 {
			counts[hold(h, fmt.Sprintf("10.0.%d.1:9", flow), "8.8.8.8:53", text)]++
		}
	}
	assert.Equal(t, map[udp.Verdict]int{udp.Delivered: 400, udp.Full: 800}, counts)
	h.Catch(0)
	_, ok := h.NextCaught()
	assert.False(t, ok, "unreported datagrams are dropped")

	h.Catch(10_000)
	text = strings.Repeat("x", 60_000)
	kept := 0
	for flow := range 200 {
		if hold(h, fmt.Sprintf("10.0.%d.1:9", flow), "8.8.8.8:53", text) == udp.Delivered {
			kept++
		}
	}
	assert.Equal(t, 17, kept, "a MiB of them")
	for range kept {
		f, ok := h.NextCaught()
		require.True(t, ok)
		require.NotNil(t, h.Dismiss(f))
	}
	assert.Equal(t, udp.Delivered, hold(h, "10.0.0.1:9", "8.8.8.8:53", text), "room again")
}
