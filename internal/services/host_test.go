package services_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// twoNodes starts 10.0.0.1 and 10.0.0.2.
func twoNodes(t *testing.T) (a, b *operator.Node) {
	t.Helper()
	return operatortest.Two(t, node.Config{})
}
