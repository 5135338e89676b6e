//go:build linux

package interop_test

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/operator"
)

// vpnNetwork is the network of nets/tun.
type vpnNetwork struct {
	*bed
	nodes map[string]*operator.Node
}

func newVPNNetwork(t *testing.T, f family) *vpnNetwork {
	t.Helper()
	w := &vpnNetwork{bed: &bed{family: f, t: t}, nodes: map[string]*operator.Node{}}
	w.namespace()
	for _, name := range []string{"R", "R1", "R2", "R3", "H"} {
		text, err := os.ReadFile(filepath.Join("../../nets/tun", name+".lnx"))
		require.NoError(t, err)
		w.nodes[name] = w.openText(name, string(text), "")
	}
	return w
}

// way returns the interface of a node's route to a prefix, or "".
func (w *vpnNetwork) way(from, prefix string) string {
	w.t.Helper()
	list := testenv.Ask(w.t, w.nodes[from], control.Routes{})
	for _, r := range list {
		if r.Prefix == netip.MustParsePrefix(w.text(prefix)) {
			return r.Iface
		}
	}
	return ""
}

// awaitRoutes waits until the machine and H have routes to each other.
func (w *vpnNetwork) awaitRoutes() {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		return w.way("R", "10.4.0.0/24") != "" && w.way("R1", "10.4.0.0/24") != "" &&
			w.way("R2", "10.4.0.0/24") != "" && w.way("R3", "10.8.0.0/24") != ""
	}, patience, 10*time.Millisecond, "RIP")
}

// On the machine, curl loads a page from a virtual host behind three virtual routers. The host
// loads a page from the machine.
func TestPageBehindThreeRouters(t *testing.T) { both(t, testPageBehindThreeRouters) }

func testPageBehindThreeRouters(t *testing.T, f family) {
	need(t, "curl", "ping")
	r := &row{peer: "Linux, curl", scenario: "a file of `serve`, behind three routers"}
	f.report(t, r)
	w := newVPNNetwork(t, f)
	host := w.nodes["H"]
	testenv.Ask(t, host, control.Serve{Port: 80})
	r.bytes = size(0)
	_, want := w.randomFile("big.bin", r.bytes)
	testenv.Ask(t, host, control.Serve{Port: 81, Dir: w.dir})
	w.awaitRoutes()

	page := w.must(w.command("curl", "-sSf", "http://"+f.colon("10.4.0.2", 80)+"/"))
	assert.Contains(t, page, "<h1>H</h1>")
	assert.Contains(t, page, "You are "+strings.TrimSuffix(f.colon(kernelIP, 0), "0"))
	assert.Contains(t, w.must(w.command("ping", "-c", "1", f.ip("10.4.0.2"))), "ttl=61",
		"64 less three routers")

	target := filepath.Join(t.TempDir(), "copy")
	start := time.Now()
	w.must(w.commandFor(transferTime(r.bytes), "curl", "-sSf", "-o", target, "http://"+f.colon("10.4.0.2", 81)+"/big.bin"))
	r.took = time.Since(start)
	assert.Equal(t, want, sumOf(t, target))

	w.kernelServes(f.colon(kernelIP, 8000), "a page of the machine\n")
	got := testenv.Ask(t, host, control.Fetch{URL: f.colon(kernelIP, 8000)})
	assert.Equal(t, "a page of the machine\n", string(got.Body))
}

// kernelServes serves a page with the kernel's TCP in the namespace.
func (w *vpnNetwork) kernelServes(addr, page string) {
	w.t.Helper()
	var l net.Listener
	require.NoError(w.t, w.inside(func() (err error) {
		l, err = net.Listen("tcp"+w.digit(), addr)
		return err
	}))
	server := &http.Server{
		ReadHeaderTimeout: patience,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, page)
		}),
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	w.t.Cleanup(func() {
		assert.NoError(w.t, server.Close())
		assert.ErrorIs(w.t, <-done, http.ErrServerClosed)
	})
}

// A link on the page's path goes down, and the next page takes the other path. Then the TUN device
// is deleted while the node uses it, and is created again.
func TestPageAfterReroute(t *testing.T) { both(t, testPageAfterReroute) }

func testPageAfterReroute(t *testing.T, f family) {
	need(t, "curl")
	r := &row{peer: "Linux, curl", scenario: "a page, a link cut, a TUN device deleted"}
	f.report(t, r)
	w := newVPNNetwork(t, f)
	testenv.Ask(t, w.nodes["H"], control.Serve{Port: 80})
	w.awaitRoutes()
	get := func() string { return w.must(w.command("curl", "-sSf", "http://"+f.colon("10.4.0.2", 80)+"/")) }
	assert.Contains(t, get(), "<h1>H</h1>")

	gate := w.nodes["R"]
	cut := w.way("R", "10.4.0.0/24")
	testenv.Ask(t, gate, control.SetLink{Iface: cut, Up: false})
	require.Eventually(t, func() bool {
		other := w.way("R", "10.4.0.0/24")
		return other != "" && other != cut && w.way("R3", "10.8.0.0/24") != ""
	}, patience, 10*time.Millisecond)
	page := w.must(w.command("curl", "-sSf", "--retry", "10", "--retry-all-errors", "http://"+f.colon("10.4.0.2", 80)+"/"))
	assert.Contains(t, page, "<h1>H</h1>")

	w.must(w.command("ip", "link", "del", "tide0"))
	require.Eventually(t, func() bool {
		faces := testenv.Ask(t, gate, control.Interfaces{})
		return !faces[0].Up && faces[0].Problem != ""
	}, patience, time.Millisecond)
	require.NoError(t, w.inside(func() error {
		_, err := control.Ask(t.Context(), gate, control.SetLink{Iface: "tun0", Up: true})
		return err
	}))
	page = w.must(w.command("curl", "-sSf", "--retry", "10", "--retry-all-errors", "http://"+f.colon("10.4.0.2", 80)+"/"))
	assert.Contains(t, page, "<h1>H</h1>")
}
