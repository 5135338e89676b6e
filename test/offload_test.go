package e2e_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	ci "github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// Every offload sends the same packets on the link, so a file can be sent with any of them and
// received with any other.
func TestEveryPairOfOffloads(t *testing.T) {
	t.Parallel()
	modes := []string{"plain"}
	if runtime.GOOS == "linux" {
		modes = []string{"gso", "mmsg", "plain"}
	}
	size := int64(8 * megabyte)
	if !ci.Long() {
		size = megabyte
	}
	for _, from := range modes {
		for _, to := range modes {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				net := CopyNetwork(t, "nets", "a-b")
				a, b := net.Start("A", "--offload", from), net.Start("B", "--offload", to)
				assert.Equal(t, from, a.Interfaces()[0].Offload)
				assert.Equal(t, to, b.Interfaces()[0].Offload)
				right := startTransfer(t, a, b, size, 9000)
				left := startTransfer(t, b, a, size, 9001)
				right.done(patience)
				left.done(patience)
			})
		}
	}
}

// A router that forwards single packets works between ends that send trains, and the reverse.
func TestMixedOffloadsBehindARouter(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has more than one offload")
	}
	for _, m := range [][3]string{{"gso", "plain", "gso"}, {"plain", "gso", "mmsg"}} {
		t.Run(m[0]+" "+m[1]+" "+m[2], func(t *testing.T) {
			t.Parallel()
			net := CopyNetwork(t, "nets", "a-b-c")
			a := net.Start("A", "--offload", m[0])
			b := net.Start("B", "--offload", m[1])
			c := net.Start("C", "--offload", m[2])
			b.MustDo("lossyforward 1")
			startTransfer(t, a, c, 4*megabyte, 9000).done(patience)
			startTransfer(t, c, a, 4*megabyte, 9001).done(patience)
		})
	}
}
