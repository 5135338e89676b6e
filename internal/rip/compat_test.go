package rip_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/rip"
)

// modes returns the configuration of undelayed with the switches of RFC 2453 §5.1 on interface 0.
func modes(send rip.SendMode, receive rip.ReceiveMode) rip.Config {
	cfg := undelayed()
	cfg.Interfaces[0].Send, cfg.Interfaces[0].Receive = send, receive
	return cfg
}

// RFC 2453 §5.1 defines the compatibility switch.
func TestCompatibilitySwitch(t *testing.T) {
	own := " 10.0.0.0/24=1 10.0.1.0/24=1"
	for mode, want := range map[rip.SendMode][]string{
		rip.SendRIP2:       {"all/0 ? *", "all/0" + own},
		rip.SendCompatible: {"10.0.0.255:520/0 ? *", "10.0.0.255:520/0" + own},
		rip.SendRIP1:       {"10.0.0.255:520/0 v1 ? *", "10.0.0.255:520/0 v1 10.0.0.0=1 10.0.1.0=1"},
		rip.SendNone:       {},
	} {
		x := newStopped2(t, modes(mode, rip.ReceiveBoth))
		x.Start(x.now)
		assert.Equal(t, append(want, "all/1 ? *", "all/1"+own), x.sent(), mode.String())
	}
}

// RFC 2453 §5.1 defines the receive control switch.
func TestReceiveControl(t *testing.T) {
	for mode, want := range map[rip.ReceiveMode][2]bool{
		rip.ReceiveBoth: {true, true}, rip.ReceiveRIP1: {true, false},
		rip.ReceiveRIP2: {false, true}, rip.ReceiveNone: {false, false},
	} {
		for i, takes := range want {
			x := newBench2(t, modes(rip.SendRIP2, mode))
			m := message2(t, rip.Response, uint8(i+1), "172.16.0.0/16=1")
			if i == 0 {
				copy(m[12:16], []byte{0, 0, 0, 0})
			}
			r := x.say(b, rip.Port, m)
			if !takes {
				assert.Equal(t, rip.RefusedVersion, r, "%v, version %d", mode, i+1)
			}
			assert.Equal(t, takes, len(x.learned()) > 0, "%v, version %d", mode, i+1)
		}
	}
}

// RFC 1058 §3.4: a router ignores a version 1 message with a nonzero must-be-zero field. Version 2
// uses these fields.
func TestMustBeZero(t *testing.T) {
	plain := message2(t, rip.Response, 1, "172.16.0.0/16=1 172.17.0.0/16=1")
	copy(plain[12:16], make([]byte, 4))
	copy(plain[32:36], make([]byte, 4))
	x := newBench2(t, undelayed())
	require.Equal(t, rip.Accepted, x.say(b, rip.Port, plain))
	require.Len(t, x.learned(), 2)
	for _, at := range []int{2, 3, 6, 7, 12, 15, 16, 19, 26, 35, 39} {
		m := append([]byte(nil), plain...)
		m[at] = 1
		x := newBench2(t, undelayed())
		assert.Equal(t, rip.RefusedMustBeZero, x.say(b, rip.Port, m), "octet %d", at)
		assert.Empty(t, x.learned())
	}
}

// RFC 2453 §4.3: without a mask, the mask of the address class applies. In the link's own network,
// the link's mask applies (RFC 1058 §3.2).
func TestMaskIsInferred(t *testing.T) {
	for addr, want := range map[string]string{
		"172.16.0.0": "172.16.0.0/16", "192.168.7.0": "192.168.7.0/24", "11.0.0.0": "11.0.0.0/8",
		"10.5.7.0": "10.5.7.0/24", "10.5.7.9": "10.5.7.9/32", "172.16.5.0": "172.16.5.0/32",
		"0.0.0.0": "0.0.0.0/0",
	} {
		for _, version := range []uint8{1, 2} {
			x := newBench2(t, undelayed())
			m := rip.Packet2{Command: rip.Response, Version: version, Entries: []rip.Entry2{
				{Family: 2, Addr: word2(netip.MustParseAddr(addr)), Metric: 1},
			}}.Append(nil)
			require.Equal(t, rip.Accepted, x.say(b, rip.Port, m))
			assert.Equal(t, []string{want + " via 10.0.0.2 cost 2"}, x.learned(), addr)
		}
	}
}

// RFC 2453 §3.7 and §4.3: a router does not announce routes that a version 1 router would misread
// on a link that may have one.
func TestVersion1ListenersAreNotMisled(t *testing.T) {
	prefixes := []string{
		"10.7.1.0/24", "10.7.0.0/16", "10.7.1.4/30", "10.7.1.9/32", "10.0.0.0/8", "0.0.0.0/0",
		"172.16.0.0/16", "172.16.5.0/24", "172.16.5.5/32", "192.168.0.0/16", "192.168.3.0/24",
	}
	want := " 0.0.0.0=2 10.0.0.0/8=2 10.7.1.0/24=2 10.7.1.9/32=2 172.16.0.0/16=2 192.168.3.0/24=2"
	for _, mode := range []rip.SendMode{rip.SendRIP1, rip.SendCompatible} {
		x := newBench2(t, modes(mode, rip.ReceiveBoth))
		x.hear(c, strings.Join(prefixes, "=1 ")+"=1")
		got := x.sent()[0]
		if mode == rip.SendRIP1 {
			want = strings.NewReplacer("/8", "", "/24", "", "/32", "", "/16", "").Replace(want)
			assert.Equal(t, "10.0.0.255:520/0 v1"+want, got)
			want = " 0.0.0.0=2 10.0.0.0/8=2 10.7.1.0/24=2 10.7.1.9/32=2 172.16.0.0/16=2 192.168.3.0/24=2"
			continue
		}
		assert.Equal(t, "10.0.0.255:520/0"+want, got)
	}
}

// RFC 2453 §3.9.1: the answer to a request goes to the client's address and port. Split horizon
// applies to a request for the whole table, but not to one for some routes.
func TestRequests(t *testing.T) {
	x := newBench2(t, undelayed())
	x.hear(b, "10.5.0.0/16=3#7")
	x.sent()
	whole := message2(t, rip.Request, 2, "*")
	table := " 10.0.0.0/24=1 10.0.1.0/24=1 10.5.0.0/16=16#7"
	assert.Equal(t, rip.Accepted, x.say(b, rip.Port, whole))
	assert.Equal(t, rip.Accepted, x.say(b, rip.Port, whole),
		"two requests before the response get one response")
	assert.Equal(t, rip.Accepted, x.say(b, 4000, whole))
	assert.Equal(t, []string{"10.0.0.2:520/0" + table, "10.0.0.2:4000/0" + table}, x.sent())
	assert.Empty(t, x.sent())

	t.Log("# some routes: in the order of the request, infinity for unknown ones")
	some := message2(t, rip.Request, 2, "10.9.0.0/16=1 10.5.0.0/16=0 10.0.1.0/24=16")
	assert.Equal(t, rip.Accepted, x.say(b, 4000, some))
	assert.Equal(t, []string{"10.0.0.2:4000/0 10.9.0.0/16=16 10.5.0.0/16=4 10.0.1.0/24=1"}, x.sent())

	t.Log("# a request without entries gets no response")
	assert.Equal(t, rip.Accepted, x.say(b, 4000, whole[:4]))
	assert.Empty(t, x.sent())

	t.Log("# the number of pending requests is bounded")
	for i := range 64 {
		require.Equal(t, rip.Accepted, x.say(b, uint16(5000+i), whole))
	}
	assert.Equal(t, rip.RefusedBusy, x.say(b, 6000, whole))
	assert.Len(t, x.sent(), 64)
	assert.Equal(t, rip.Accepted, x.say(b, 6000, whole))
}

// RFC 2453 §4.6: a version 1 request gets a version 1 response. A router that sends only RIP-2 does
// not answer it. RFC 2453 §3.10.2: the response has the version of the request.
func TestVersion1Request(t *testing.T) {
	ask := message2(t, rip.Request, 1, "*")
	x := newBench2(t, undelayed())
	assert.Equal(t, rip.RefusedVersion, x.say(b, 4000, ask))
	x = newBench2(t, modes(rip.SendCompatible, rip.ReceiveBoth))
	require.Equal(t, rip.Accepted, x.say(b, 4000, ask))
	assert.Equal(t, []string{"10.0.0.2:4000/0 v1 10.0.0.0=1 10.0.1.0=1"}, x.sent())
	require.Equal(t, rip.Accepted, x.say(b, 4000, message2(t, rip.Request, 2, "*")))
	assert.Equal(t, []string{"10.0.0.2:4000/0 10.0.0.0/24=1 10.0.1.0/24=1"}, x.sent())

	t.Log("# a router that sends only version 1, or nothing, answers accordingly")
	x = newBench2(t, modes(rip.SendRIP1, rip.ReceiveBoth))
	assert.Equal(t, rip.RefusedVersion, x.say(b, 4000, message2(t, rip.Request, 2, "*")))
	x = newBench2(t, modes(rip.SendNone, rip.ReceiveBoth))
	assert.Equal(t, rip.RefusedSilent, x.say(b, 4000, message2(t, rip.Request, 2, "*")))
}

func TestPassiveInterface(t *testing.T) {
	cfg := undelayed()
	cfg.Interfaces[0].Passive = true
	x := newStopped2(t, cfg)
	x.Start(x.now)
	assert.Len(t, x.sent(), 2, "only the other interface sends")
	x.hear(b, "10.5.0.0/16=3")
	assert.Equal(t, []string{"10.5.0.0/16 via 10.0.0.2 cost 4"}, x.learned())
	assert.Equal(t, []string{"all/1 10.5.0.0/16=4"}, x.sent())
	whole := message2(t, rip.Request, 2, "*")
	assert.Equal(t, rip.RefusedSilent, x.say(b, rip.Port, whole))
	assert.Equal(t, rip.Accepted, x.say(b, 4000, whole), "a monitoring tool gets a response")
	assert.Len(t, x.sent(), 1)
	for _, line := range x.wait(time.Minute) {
		assert.Contains(t, line, "all/1")
	}
}

// RFC 2453 §4.5: on a link with configured neighbors, the router sends messages to each by unicast.
// It accepts messages only from them.
func TestUnicastNeighbors(t *testing.T) {
	cfg := undelayed()
	cfg.Neighbors = []rip.Neighbor{{Addr: c, Iface: 1}, {Addr: d, Iface: 1}}
	x := newStopped2(t, cfg)
	x.Start(x.now)
	own := " 10.0.0.0/24=1 10.0.1.0/24=1"
	assert.Equal(t, []string{
		"10.0.1.2:520/1 ? *", "10.0.1.2:520/1" + own, "10.0.1.3:520/1 ? *", "10.0.1.3:520/1" + own,
		"all/0 ? *", "all/0" + own,
	}, x.sent())
	x.hear(c, "10.5.0.0/16=3")
	assert.Equal(t, []string{
		"10.0.1.2:520/1 10.5.0.0/16=16", "10.0.1.3:520/1 10.5.0.0/16=16", "all/0 10.5.0.0/16=4",
	}, x.sent())
	m := message2(t, rip.Response, 2, "10.6.0.0/16=3")
	assert.Equal(t, rip.RefusedNotNeighbor, x.say(netip.MustParseAddr("10.0.1.9"), rip.Port, m))
}

func TestGatewaysAreBounded(t *testing.T) {
	cfg := undelayed()
	cfg.Interfaces[0].Addr = netip.MustParsePrefix("10.0.0.1/16")
	cfg.Interfaces[1].Addr = netip.MustParsePrefix("10.1.0.1/16")
	x := newBench2(t, cfg)
	m := message2(t, rip.Response, 2, "10.5.0.0/16=16")
	say := func(i int) rip.Refusal {
		from := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		return x.Input(x.now, netip.AddrPortFrom(from, rip.Port), 0, m)
	}
	for i := range 1024 {
		require.Equal(t, rip.Accepted, say(i+2))
	}
	assert.Equal(t, rip.RefusedTooManyNeighbors, say(2000))
	x.wait(181 * time.Second)
	assert.Equal(t, rip.Accepted, say(2000), "a new router replaces a silent one")
}
