package node

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// RFC 4987 §2: 100,000 SYNs from sources that never answer do not keep a real client from a
// listener, a screened listener or a forwarder, in either family. A client's ACK shows that the
// client is real (§3.6).
func TestClientsConnectDuringASYNFlood(t *testing.T) {
	for name, take := range map[string]func(n *Node, accepted func()) error{
		"listener": func(n *Node, accepted func()) error {
			l, err := n.TCP.Listen(netip.MustParseAddrPort("[::]:80"), 0)
			go func() {
				for err == nil {
					if _, err = l.Accept(); err == nil {
						accepted()
					}
				}
			}()
			return err
		},
		"screen": func(n *Node, accepted func()) error {
			_, err := n.TCP.ListenWith(netip.MustParseAddrPort("[::]:80"),
				ListenOptions{Screen: acceptAll(accepted)})
			return err
		},
		"forward": func(n *Node, accepted func()) error { return n.Forwarders.TakeTCP(acceptAll(accepted)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSegments(t)
				var accepted atomic.Int64
				require.NoError(t, take(s.node, func() { accepted.Add(1) }))
				// number of SYNs, and the number of SYNs per real client
				const flood, every = 100_000, 200
				honest := 0
				for i := range flood {
					s.send(client(i), 80, tcp.SYN, 0, 0)
					if i%every != every-1 {
						s.answers(func(netip.AddrPort, tcp.Header) {})
						continue
					}
					honest++
					s.clock.Advance(10 * time.Millisecond)
					s.handshake(client(flood + honest))
				}
				synctest.Wait()
				assert.EqualValues(t, honest, accepted.Load(), "during the flood")
				for range 100 {
					honest++
					s.clock.Advance(100 * time.Millisecond)
					s.handshake(client(flood + honest))
				}
				synctest.Wait()
				assert.EqualValues(t, honest, accepted.Load(), "after it")
				require.NoError(t, s.node.Close())
				synctest.Wait()
			})
		})
	}
}

// acceptAll accepts every connection and reports each.
func acceptAll(accepted func()) func(*Caught) {
	return func(c *Caught) {
		if _, err := c.Accept(); err == nil {
			accepted()
		}
	}
}

// handshake performs a client's handshake, if the node answers its SYN.
func (s *segments) handshake(from netip.AddrPort) {
	s.Helper()
	s.send(from, 80, tcp.SYN, 0, 0)
	synctest.Wait()
	if h, ok := s.heard(tcp.SYN | tcp.ACK)[from]; ok {
		s.send(from, 80, tcp.ACK, 1, h.Seq+1)
	}
}
