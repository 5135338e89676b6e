package services

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator/roomtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func room(n *node.Node, name string) roomtest.Room { return New(n, name) }

// twoNodes starts 10.0.0.1 and 10.0.0.2.
func twoNodes(t *testing.T) (a, b *roomtest.Host) {
	t.Helper()
	return roomtest.Two(t, node.Config{}, room)
}
