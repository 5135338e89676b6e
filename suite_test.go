package tidepool_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"

	"github.com/tidepool-net/tidepool"
)

// lossyTCP is a TCP for links that lose much and take no time: the time-outs of
// the family's networks.
var lossyTCP = tidepool.TCP{RTOMin: 2e6, RTOInitial: 50e6, RTOMax: 1e9}

// golang.org/x/net/nettest on every kind of link.
func TestNettest(t *testing.T) {
	for _, kind := range []struct {
		name string
		open func(t *testing.T) (client, server *tidepool.Node)
	}{
		{"a pipe", func(t *testing.T) (client, server *tidepool.Node) {
			a, b := pair(t, tidepool.Config{TCP: lossyTCP})
			return b, a
		}},
		{"a bad pipe", func(t *testing.T) (client, server *tidepool.Node) {
			x, y := tidepool.Pipe(0)
			cfg := host(tidepool.Config{TCP: lossyTCP, Seed: 3}, "10.0.0.1/24", "", x)
			cfg.Interfaces[0].Impair = tidepool.Impairments{
				Loss: 0.01, Duplicate: 0.01, Reorder: 0.01, Corrupt: 0.01,
				Delay: 200 * time.Microsecond, Jitter: 50 * time.Microsecond, Rate: 1e9,
			}
			return open(t, host(tidepool.Config{TCP: lossyTCP}, "10.0.0.2/24", "", y)), open(t, cfg)
		}},
		{"UDP", func(t *testing.T) (client, server *tidepool.Node) {
			a, _, c := udpLine(t, tidepool.Config{TCP: lossyTCP})
			return c, a
		}},
		{"lossy UDP", func(t *testing.T) (client, server *tidepool.Node) {
			a, router, c := udpLine(t, tidepool.Config{TCP: lossyTCP, Seed: 1})
			require.NoError(t, router.SetLoss(0.01))
			return c, a
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			client, server := kind.open(t)
			l, err := server.Listen("tcp", "10.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				c1, err = client.Dial("tcp", l.Addr().String())
				if err != nil {
					return nil, nil, nil, err
				}
				c2, err = l.Accept()
				if err != nil {
					return nil, nil, nil, err
				}
				return c1, c2, func() { _ = c1.Close(); _ = c2.Close() }, nil
			})
		})
	}
}
