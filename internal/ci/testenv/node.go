package testenv

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// FreePorts returns n free UDP ports, as FreePort does.
func FreePorts(tb testing.TB, n int) []int {
	tb.Helper()
	ports := make([]int, n)
	for i := range ports {
		ports[i] = int(FreePort(tb))
	}
	return ports
}

// ParseNode parses the text of an .lnx file.
func ParseNode(tb testing.TB, name, text string) *lnx.Config {
	tb.Helper()
	c, err := lnx.Parse(name+".lnx", []byte(text))
	require.NoError(tb, err)
	return c
}

// TwoNodes returns the configurations of two nodes on one link: 10.0.0.1 and 10.0.0.2.
func TwoNodes(tb testing.TB) (a, b *lnx.Config) {
	tb.Helper()
	p := FreePorts(tb, 2)
	text := `interface if0 10.0.0.%d/24 127.0.0.1:%d
neighbor 10.0.0.%d at 127.0.0.1:%d via if0
`
	return ParseNode(tb, "A", fmt.Sprintf(text, 1, p[0], 2, p[1])),
		ParseNode(tb, "B", fmt.Sprintf(text, 2, p[1], 1, p[0]))
}

// ThreeNodes returns the configurations of A - B - C: 10.0.0.1, a router, 10.1.0.2.
func ThreeNodes(tb testing.TB) (a, b, c *lnx.Config) {
	tb.Helper()
	p := FreePorts(tb, 4)
	a = ParseNode(tb, "A", fmt.Sprintf(`interface if0 10.0.0.1/24 127.0.0.1:%d
neighbor 10.0.0.2 at 127.0.0.1:%d via if0
routing static
route 0.0.0.0/0 via 10.0.0.2`, p[0], p[1]))
	b = ParseNode(tb, "B", fmt.Sprintf(`interface if0 10.0.0.2/24 127.0.0.1:%d
interface if1 10.1.0.1/24 127.0.0.1:%d
neighbor 10.0.0.1 at 127.0.0.1:%d via if0
neighbor 10.1.0.2 at 127.0.0.1:%d via if1
routing rip`, p[1], p[2], p[0], p[3]))
	c = ParseNode(tb, "C", fmt.Sprintf(`interface if0 10.1.0.2/24 127.0.0.1:%d
neighbor 10.1.0.1 at 127.0.0.1:%d via if0
routing static
route 0.0.0.0/0 via 10.1.0.1`, p[3], p[2]))
	return a, b, c
}

// Ask performs a request that must succeed.
func Ask[A any](tb testing.TB, op control.Operator, req control.Request[A]) A {
	tb.Helper()
	answer, err := control.Ask(tb.Context(), op, req)
	require.NoError(tb, err)
	return answer
}
