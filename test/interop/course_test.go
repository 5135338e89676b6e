//go:build linux

package interop_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/test/internal/peer"
)

// TestCourseQuirks transfers a file in each direction between our node and a small peer with each
// of the quirks seen in the course's nodes. They are neighbors over UDP on the loopback.
func TestCourseQuirks(t *testing.T) {
	const bytesEach, port = 1_000_000, 7000
	ours, theirs := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	file := make([]byte, bytesEach)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(file)
	for name, quirks := range peer.Closing {
		for _, percent := range []float64{0, 2} {
			t.Run(fmt.Sprintf("%s at %g%%", name, percent), func(t *testing.T) {
				t.Parallel()
				r := &row{
					peer: "course node", scenario: name, loss: percent, bytes: 2 * bytesEach,
				}
				report(t, r)
				quirks := quirks
				quirks.Loss, quirks.ISS = percent/100, 20238
				at, from := testenv.FreePort(t), testenv.FreePort(t)
				cfg, err := lnx.Parse("A.lnx", fmt.Appendf(nil, "interface if0 %v/24 127.0.0.1:%d\n"+
					"neighbor %v at 127.0.0.1:%d via if0\n", ours, at, theirs, from))
				require.NoError(t, err)
				n, err := operator.Open(operator.Config{LNX: cfg, Node: node.Config{Seed: 7}})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, n.Close()) })
				wire := peer.Listen(t, from, at)
				began := time.Now()

				h := peer.New(wire, theirs, quirks)
				sent := make(chan error, 1)
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					c, err := n.Node.TCP.Dial(ctx, netip.AddrPortFrom(theirs, port))
					if err == nil {
						_, err = c.Write(file)
						err = firstOf(err, c.CloseWrite(), drain(c), c.Close())
					}
					sent <- err
				}()
				came, err := h.Accept(port, nil, patience)
				require.NoError(t, err)
				require.NoError(t, <-sent)
				assert.True(t, bytes.Equal(file, came), "got %d bytes of %d", len(came), bytesEach)
				assert.Zero(t, h.Stats.DataFINs, "segments with data and a FIN")

				l, err := n.Node.TCP.Listen(netip.AddrPortFrom(ours, port+1), 0)
				require.NoError(t, err)
				defer l.Close()
				got := make(chan []byte, 1)
				go func() {
					var all []byte
					if c, err := l.Accept(); err == nil {
						all, _ = io.ReadAll(c)
						_ = c.Close()
					}
					got <- all
				}()
				h = peer.New(wire, theirs, quirks)
				_, err = h.Connect(netip.AddrPortFrom(ours, port+1), file, patience)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(file, <-got), "the file from the course node")
				r.took = time.Since(began)
			})
		}
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func drain(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}
