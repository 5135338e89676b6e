package internet

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/capture"
)

// connected returns both ends of a connection from b to a.
func connected(t *testing.T, w *World) (client, server net.Conn, ln net.Listener) {
	t.Helper()
	ln, err := w.Host("a").Listen("tcp", ":7")
	require.NoError(t, err)
	client, err = w.Host("b").Dial("tcp", "a:7")
	require.NoError(t, err)
	server, err = ln.Accept()
	require.NoError(t, err)
	return client, server, ln
}

// A paused host answers when it resumes. Meanwhile, its peer retransmits.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Start(t, "link a r delay 5ms\nlink r b")
		w.AllowLeaks()
		serve(w.Host("a"))
		c, err := w.Host("b").Dial("tcp", "a:7")
		require.NoError(t, err)
		w.Host("a").Pause()
		began := time.Now()
		w.At(time.Since(w.began)+10*time.Second, w.Host("a").Resume)
		require.NoError(t, ask(c, time.Minute))
		assert.InDelta(t, 10*time.Second, time.Since(began), 1e8)
		info, err := c.(*Conn).Info()
		require.NoError(t, err)
		assert.Positive(t, info.TotalRetrans)
		w.Host("a").Pause()
		w.Host("a").Crash()
	})
}

// A reset from outside ends both ends with the error that a firewall would cause.
func TestReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Start(t, "link a r delay 5ms\nlink r b")
		w.AllowLeaks()
		client, server, _ := connected(t, w)
		assert.Equal(t, 0, w.Host("a").Reset("r"))
		assert.Equal(t, 1, w.Host("a").Reset("b"))
		_, err := client.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = server.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

// failing runs a test that is expected to fail, and returns its first failure.
func failing(t *testing.T, network string, do func(w *World)) string {
	t.Helper()
	m := &failures{}
	synctest.Test(t, func(t *testing.T) {
		m.TB = t
		done := make(chan struct{})
		go func() {
			defer close(done)
			w := Start(m, network)
			defer w.end()
			do(w)
		}()
		<-done
	})
	require.NotEmpty(t, m.said)
	return m.said[0]
}

func TestLeaks(t *testing.T) {
	said := failing(t, "link a b", func(w *World) {
		client, server, ln := connected(t, w)
		require.NoError(t, client.Close())
		require.NoError(t, ln.Close())
		_ = server // never closed
	})
	assert.Regexp(t, `1 left open \(World\.AllowLeaks permits that\):
  a did not close the connection 10.\S+:7 -> 10.\S+, opened by goroutine \d+ \(running\)
    \S+internet\.connected
        \S+/watch_test\.go:\d+
    \S+internet\.TestLeaks\.func1
`, said)
	synctest.Test(t, func(t *testing.T) {
		w := Start(t, "link a b")
		serve(w.Host("a")) // the listener is closed with the host
		c, err := w.Host("b").Dial("tcp", "a:7")
		require.NoError(t, err)
		require.NoError(t, ask(c, time.Second))
		require.NoError(t, c.Close())
	})
}

// Two programs that wait for each other, or for a host that is cut off, fail. The failure says what
// they wait for.
func TestWaits(t *testing.T) {
	for name, row := range map[string]struct {
		do   func(w *World)
		want string
	}{
		"both ends read": {func(*World) {}, `no call has returned for 24h0m0s of the network's time; ` +
			`these calls wait:
  a has waited since \S+ in Read of the connection 10\.\S+ -> 10.* to b, in state ESTABLISHED(.|\n)+
  b has waited since \S+ in Read of the connection .* to a, in state ESTABLISHED, opened by`},
		"everything is cut": {func(w *World) {
			for _, l := range w.links {
				l.Cut()
			}
		}, `a has waited since \S+ in Read`},
		"the peer crashed": {
			func(w *World) { w.Host("a").Crash() },
			`b has waited since \S+ in Read of .* to a, which is down, in state ESTABLISHED`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			said := failing(t, "link a r\nlink r b", func(w *World) {
				client, server, _ := connected(t, w)
				row.do(w)
				go func() { _, _ = server.Read(make([]byte, 1)) }()
				_, err := client.Read(make([]byte, 1))
				assert.Error(t, err)
			})
			assert.Regexp(t, row.want, said)
		})
	}
}

// Nothing scheduled happens after the end of the test.
func TestAtAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &failures{TB: t}
		w := Start(m, "link a b")
		w.At(time.Hour, func() { t.Error("it is called") })
		w.end()
		w.At(0, func() { t.Error("it is called") })
		<-time.After(2 * time.Hour)
		assert.Equal(t, []string{"internet: At: the test has ended"}, m.said)
	})
}

// A goroutine that never waits keeps the time of its bubble from advancing.
func TestSpin(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestSpinning$", "-internet.spin=2s")
	cmd.Env = append(os.Environ(), "INTERNET_PLANTED=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Regexp(t, `panic: internet: TestSpinning \(-internet\.seed=1\): the network's time has stood `+
		`still for \S+: a goroutine runs without end, or waits for something outside of the bubble:
(.|\n)*internet\.spinning`, string(out))
}

func TestSpinning(t *testing.T) {
	if os.Getenv("INTERNET_PLANTED") != "1" {
		t.Skip("it spins: for TestSpin")
	}
	Test(t, "link a b", func(*testing.T, *World) { spinning() })
}

func spinning() {
	for stop := make(chan struct{}); ; {
		select {
		case <-stop:
			return
		default:
		}
	}
}

// A failed test writes its network's page, a single file, next to the captures.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestPlanted$", "-test.artifacts",
		"-test.outputdir="+dir, "-internet.seed=3", "-internet.shrink=false")
	cmd.Env = append(os.Environ(), "INTERNET_PLANTED=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	pages, err := filepath.Glob(dir + "/_artifacts/*/network.html")
	if len(pages) == 0 {
		pages, err = filepath.Glob(dir + "/_artifacts/*/*/*/network.html")
	}
	require.NoError(t, err)
	require.Len(t, pages, 1, "%s", out)
	page, err := os.ReadFile(pages[0])
	require.NoError(t, err)
	for _, want := range []string{
		"<h1>TestPlanted failed</h1>", "go test -run &#39;^TestPlanted$&#39; -count=1 -internet.seed=3",
		"<svg ", "<td>server<td>r\n<td class=\"number\">", "client crashes", "r starts again", " of client to ", "── SYN seq 0 win",
		"✗ lost by the link",
	} {
		assert.Contains(t, string(page), want)
	}
	assert.NotContains(t, string(page), "<script")
	assert.FileExists(t, filepath.Join(filepath.Dir(pages[0]), "ladder.txt"))
	file, err := os.Open(filepath.Join(filepath.Dir(pages[0]), "network.pcapng"))
	require.NoError(t, err)
	defer file.Close()
	places, last := map[string]bool{}, int64(0)
	require.NoError(t, capture.Read(file, func(p *capture.Captured) error {
		assert.GreaterOrEqual(t, p.At, last)
		places[p.Name], last = true, p.At
		return nil
	}))
	assert.Len(t, places, 4, "the interfaces of both links: %v", places)
}
