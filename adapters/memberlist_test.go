package adapters

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internet"
)

// gossipPort is memberlist's default port.
const gossipPort = 7946

// gossip is a memberlist.Transport on a host.
type gossip struct {
	host    *internet.Host
	pc      net.PacketConn
	ln      net.Listener
	packets chan *memberlist.Packet
	streams chan net.Conn
	done    chan struct{}
}

func newGossip(h *internet.Host) (*gossip, error) {
	pc, err := h.ListenPacket("udp", fmt.Sprintf(":%d", gossipPort))
	if err != nil {
		return nil, err
	}
	ln, err := h.Listen("tcp", fmt.Sprintf(":%d", gossipPort))
	if err != nil {
		return nil, err
	}
	g := &gossip{
		host: h, pc: pc, ln: ln,
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn), done: make(chan struct{}),
	}
	go g.receive()
	go g.accept()
	return g, nil
}

func (g *gossip) receive() {
	for {
		buf := make([]byte, 65536)
		n, from, err := g.pc.ReadFrom(buf)
		if err != nil {
			return
		}
		select {
		case g.packets <- &memberlist.Packet{Buf: buf[:n], From: from, Timestamp: time.Now()}:
		case <-g.done:
			return
		}
	}
}

func (g *gossip) accept() {
	for {
		c, err := g.ln.Accept()
		if err != nil {
			return
		}
		select {
		case g.streams <- c:
		case <-g.done:
			_ = c.Close()
			return
		}
	}
}

func (g *gossip) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return g.host.Addrs()[0].AsSlice(), gossipPort, nil
}

func (g *gossip) WriteTo(b []byte, to string) (time.Time, error) {
	a, err := net.ResolveUDPAddr("udp", to)
	if err != nil {
		return time.Time{}, err
	}
	_, err = g.pc.WriteTo(b, a)
	return time.Now(), err
}

func (g *gossip) DialTimeout(to string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return g.host.DialContext(ctx, "tcp", to)
}

func (g *gossip) PacketCh() <-chan *memberlist.Packet { return g.packets }
func (g *gossip) StreamCh() <-chan net.Conn           { return g.streams }

func (g *gossip) Shutdown() error {
	close(g.done)
	_ = g.ln.Close() // the host may have crashed
	_ = g.pc.Close()
	return nil
}

// member starts a member on a host.
func member(t *testing.T, h *internet.Host) *memberlist.Memberlist {
	t.Helper()
	g, err := newGossip(h)
	require.NoError(t, err)
	config := memberlist.DefaultLANConfig()
	config.Name, config.Transport, config.LogOutput = h.Name(), g, io.Discard
	m, err := memberlist.Create(config)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = m.Shutdown() // after a crash, this is the second call
		// Shutdown does not wait for a probe that waits for its timeout
		time.Sleep(10 * time.Second)
	})
	return m
}

func members(m *memberlist.Memberlist) (names []string) {
	for _, n := range m.Members() {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return names
}

// eventually waits until each member sees these names.
func eventually(t *testing.T, limit time.Duration, list []*memberlist.Memberlist, want ...string) {
	t.Helper()
	began := time.Now()
	for _, m := range list {
		for !slices.Equal(members(m), want) {
			if time.Since(began) > limit {
				require.Equal(t, want, members(m), "after %v: %s", limit, m.LocalNode().Name)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	t.Logf("%v see %v after %v", len(list), want, time.Since(began))
}

// Five members find each other, notice a crash, and see the member again after its restart. They
// also find each other after a partition that is shorter than the 30 s of GossipToTheDeadTime.
func TestMemberlist(t *testing.T) {
	internet.Test(t, star(5, "delay 10ms loss 1%"), func(t *testing.T, w *internet.World) {
		var list []*memberlist.Memberlist
		for i := range 5 {
			list = append(list, member(t, w.Host(fmt.Sprintf("n%d", i+1))))
		}
		seed := fmt.Sprintf("%v:%d", w.Host("n1").Addrs()[0], gossipPort)
		for _, m := range list[1:] {
			_, err := m.Join([]string{seed})
			require.NoError(t, err)
		}
		eventually(t, time.Minute, list, "n1", "n2", "n3", "n4", "n5")

		w.Host("n5").Crash()
		require.NoError(t, list[4].Shutdown())
		eventually(t, time.Minute, list[:4], "n1", "n2", "n3", "n4")
		w.Host("n5").Restart(nil)
		list[4] = member(t, w.Host("n5"))
		_, err := list[4].Join([]string{seed})
		require.NoError(t, err)
		eventually(t, time.Minute, list, "n1", "n2", "n3", "n4", "n5")

		w.Partition([]string{"n1", "n2"}, []string{"n3", "n4", "n5", "r"})
		eventually(t, 20*time.Second, list[2:], "n3", "n4", "n5")
		w.Heal()
		eventually(t, 5*time.Minute, list, "n1", "n2", "n3", "n4", "n5")
	})
}
