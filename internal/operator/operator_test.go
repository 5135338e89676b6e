package operator_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, cfg node.Config, name, text string) *operator.Node {
	t.Helper()
	return operatortest.Start(t, cfg, testenv.ParseNode(t, name, text))
}

// A port in use is an error with its position in the file, and the node is not opened.
func TestPortInUse(t *testing.T) {
	taken := listenHere(t)
	p := testenv.FreePorts(t, 1)
	text := fmt.Sprintf("interface if0 10.0.0.1/24 127.0.0.1:%d\nexpose 80 3000\n"+
		"publish %s 10.0.0.2:80\n", p[0], taken.Addr())
	c, err := lnx.Parse("A.lnx", []byte(text))
	require.NoError(t, err)
	_, err = operator.Open(operator.Config{LNX: c})
	var at *lnx.Error
	require.ErrorAs(t, err, &at)
	assert.Equal(t, 3, at.Line)
	assert.Equal(t, 9, at.Col)
	require.ErrorIs(t, err, control.ErrPortInUse)
	here := operator.CheckHere(t.Context(), c)
	require.Len(t, here, 1)
	assert.Equal(t, *at, *here[0])

	require.NoError(t, taken.Close())
	n, err := operator.Open(operator.Config{LNX: c})
	require.NoError(t, err)
	assert.Len(t, testenv.Ask(t, n, control.Doors{}), 2)
	require.NoError(t, n.Close())
}

// Every kind of request has a handler, and no other type has one.
func TestEachKindOfRequestHasAHandler(t *testing.T) {
	handlers := operator.Closed().Handlers
	for _, k := range control.Kinds() {
		assert.Contains(t, handlers, k.Request)
	}
	assert.Len(t, handlers, len(control.Kinds()))
}
