package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"image"
	"image/color"
	"image/png"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// pageSource reports that it is complete when its script and all its pictures are loaded.
const pageSource = `<!doctype html><title>Behind three routers</title>
<p id="said">nothing yet</p>
<script src="big.js"></script>
<script>
  let h = 0x811c9dc5, wide = 0, n = 12;
  for (let i = 0; i < big.length; i++) h = Math.imul(h ^ big.charCodeAt(i), 0x01000193) >>> 0;
  for (let i = 1; i <= n; i++) document.body.append(Object.assign(new Image, { src: i + ".png" }));
  onload = () => {
    for (const image of document.images) wide += image.naturalWidth;
    document.getElementById("said").textContent = "big.js " + h + ", pictures " + wide;
  };
</script>`

// site starts a web server with the page. It returns the text that a browser shows when everything
// is loaded.
func site(t *testing.T) (service *httptest.Server, says string) {
	t.Helper()
	big := strings.Repeat("a script of half a megabyte, more or less. ", 12_000)
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(big))
	files := map[string][]byte{
		"/": []byte(pageSource), "/big.js": []byte("const big = '" + big + "';"),
	}
	wide := 0
	for i := range 12 {
		picture := image.NewRGBA(image.Rect(0, 0, 20+i, 20))
		picture.Set(i, i, color.White)
		var b bytes.Buffer
		require.NoError(t, png.Encode(&b, picture))
		files[fmt.Sprintf("/%d.png", i+1)] = b.Bytes()
		wide += 20 + i
	}
	service = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body) // the browser reports errors
	}))
	t.Cleanup(service.Close)
	return service, fmt.Sprintf("big.js %d, pictures %d", hash.Sum32(), wide)
}

// browser returns a function that loads a page in headless Chromium and prints it when complete.
func browser(t *testing.T) func(url string) string {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("skip: needs chromium")
	}
	return func(url string) string {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu",
			"--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage",
			"--user-data-dir="+t.TempDir(), "--dump-dom", url)
		var complaint bytes.Buffer
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		require.NoError(t, err, complaint.String())
		return string(out)
	}
}

// A browser loads a page from a server of this machine through two port forwards, across three
// routers that each lose 2 % of the packets in each direction. No process needs root.
func TestBrowserAcrossThreeLossyRouters(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser is started, twice")
	}
	t.Parallel()
	readAcross(t, CopyNetwork(t, "nets", "line-5"), "A B C D E", "127.0.0.1")
}

// The same with only IPv6 in the network and in the browser's connection.
func TestBrowserAcrossThreeLossyIPv6Routers(t *testing.T) {
	testenv.NeedLong(t) // starts a browser, twice
	if l, err := net.Listen("tcp6", "[::1]:0"); err != nil {
		t.Skip("skip: needs IPv6 on the loopback")
	} else {
		require.NoError(t, l.Close())
	}
	t.Parallel()
	folder := t.TempDir()
	out, err := Command("net", "generate", "line", "5", "--family", "6", "-o", folder).CombinedOutput()
	require.NoError(t, err, "%s", out)
	texts := map[string]string{}
	for _, name := range []string{"A", "B", "R1", "R2", "R3"} {
		text, err := os.ReadFile(filepath.Join(folder, name+".lnx"))
		require.NoError(t, err)
		texts[name] = string(text)
	}
	readAcross(t, NewNetwork(t, texts), "A R1 R2 R3 B", "[::1]")
}

// readAcross loads a page from an address of this machine, through a port forward at the first of
// the nodes and another at the last. The nodes in between are routers that lose packets.
func readAcross(t *testing.T, net *Network, nodes, on string) {
	t.Helper()
	read := browser(t)
	service, says := site(t)
	net.StartAll()
	names := strings.Fields(nodes)
	routers := names[1 : len(names)-1]
	a, e := net.Node(names[0]), net.Node(names[len(names)-1])
	for _, name := range routers {
		net.Node(name).AwaitRoute(a.Addr())
		net.Node(name).AwaitRoute(e.Addr())
		net.Node(name).MustDo("lossyforward 2")
	}
	e.MustDo("expose 80 %s", service.Listener.Addr())
	a.MustDo("publish %s:0 %s", on, netip.AddrPortFrom(e.Addr(), 80))
	forward := regexp.MustCompile(regexp.QuoteMeta(on) + `:\d+`).FindString(
		strings.Join(a.MustDo("doors"), "\n"))
	require.NotEmpty(t, forward)
	assert.Contains(t, read("http://"+forward+"/"), says)
	for _, name := range routers {
		assert.Positive(t, net.Node(name).Dropped()["lossy forward"], "of %s's", name)
	}

	t.Log("# the service ends, and the browser is refused")
	service.Close()
	assert.NotContains(t, read("http://"+forward+"/"), says)
	e.Eventually(Soon, "a refused connection", func() bool {
		return has(e.MustDo("doors"), "connection refused")
	})
}
