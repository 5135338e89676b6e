package internet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Hosts on both sides of a NAT reach a port forward by the router's name. Hosts inside reach all
// hosts; hosts outside reach none inside.
func TestNAT(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := Start(t, "link a r\nlink b r\nlink r isp delay 5ms\nlink isp s\n"+
			"nat r isp\nforward r tcp 80 a:7\n")
		w.AllowLeaks()
		serve(w.Host("a"))
		serve(w.Host("s"))
		for from, to := range map[string]string{"s": "r:80", "b": "r:80", "a": "s:7"} {
			c, err := w.Host(from).Dial("tcp", to)
			require.NoError(t, err, from)
			require.NoError(t, ask(c, time.Second), from)
		}
		_, err := w.Host("s").Dial("tcp", "a:7")
		assert.Error(t, err)
	})
}
