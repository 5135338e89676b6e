package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ci "github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// Objects cross a router that loses a tenth of the packets. A server has two clients, and one of
// them is killed in the middle of a transfer. The server gives up on that one and serves the other.
func TestObjectsCrossALossyNetwork(t *testing.T) {
	t.Parallel()
	a, b, c := line(t, "nets", "a-b-c")
	b.MustDo("impair if1 out loss 10%%")
	b.MustDo("impair if0 out loss 5%%")
	size := int64(10 * megabyte)
	if !ci.Long() {
		size = megabyte
	}
	large, small := RandomFile(t, size, 1), RandomFile(t, 1000, 2)
	mark := a.Mark()
	a.MustDo("rdt serve 9000 %q %q --interleave --patience 20", large, small)

	into := t.TempDir()
	out := c.MustDo("rdt fetch 10.0.0.1 9000 into %q --patience 20", into)
	for _, file := range []string{large, small} {
		digest := Digest(t, file)
		assert.Equal(t, digest, Digest(t, filepath.Join(into, filepath.Base(file))))
		assert.True(t, has(out, digest), "%q", out)
	}
	a.Await(mark, patience, `rdt 9000: 10\.1\.0\.2:\d+: 2 objects, \d+ bytes in .* packets, `)

	// The killed client is silent. Meanwhile, the other client gets what it requests.
	mark = a.Mark()
	b.MustDo("rdt list 10.0.0.1 9000")
	victim := RandomFile(t, 50*megabyte, 3)
	// The server retransmits the listing after 1, 3, 5 and 7 s if packets of it are lost.
	a.MustDo("rdt serve 9001 %q --patience 8", victim)
	c.Command("rdt fetch 10.0.0.1 9001")
	// The server has a flow for the listing, then one for the object.
	sending := func(what string) bool {
		return regexp.MustCompile(` sending +` + what).MatchString(strings.Join(a.MustDo("rdt"), "\n"))
	}
	a.Eventually(patience, "the object in flight", func() bool { return sending("1 +50000000 ") })
	c.Kill()
	require.True(t, has(b.MustDo("rdt fetch 10.0.0.1 9000 %s", filepath.Base(small)), "1 objects"))
	a.Await(mark, patience, `rdt 9001: .* no answer from the client of 1 objects`)
	// The client's last packet about the listing may be lost; then the server drops that flow too.
	a.Eventually(patience, "neither flow left", func() bool { return !sending("") })
	a.MustDo("rdt close 9000")
	fails(t, b, 10*time.Second, "rdt list 10.0.0.1 9000")
	entries, err := os.ReadDir(into)
	require.NoError(t, err)
	for _, e := range entries {
		assert.NotRegexp(t, `\.part$`, e.Name())
	}
}
