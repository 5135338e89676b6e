package traffic

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/node/nodetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a node that moves bytes.
type host struct {
	*node.Node
	traffic *Host
}

func (h *host) Operator() control.Operator { return h }

// Do has the node answer what is not about traffic.
func (h *host) Do(ctx context.Context, req any) (any, error) {
	answer, err := h.traffic.Do(ctx, req)
	if errors.Is(err, control.ErrUnsupported) {
		return h.Node.Do(ctx, req)
	}
	return answer, err
}

func start(t *testing.T, file *lnx.Config, seed uint64) *host {
	t.Helper()
	n, err := node.Open(node.Config{LNX: file, Seed: seed})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return &host{n, New(n, file.Name)}
}

// twoNodes starts 10.0.0.1 and 10.0.0.2.
func twoNodes(t *testing.T) (a, b *host) {
	t.Helper()
	fa, fb := nodetest.Two(t)
	return start(t, fa, 0), start(t, fb, 0)
}
