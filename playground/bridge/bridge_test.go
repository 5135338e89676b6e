package bridge

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ci "github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// bed is a bridge for the node C, and C's neighbor.
type bed struct {
	t        *testing.T
	bridge   *Bridge
	at       string
	neighbor net.PacketConn
	own      *net.UDPAddr // C's address

	left chan struct{} // receives when a page has left

	mu   sync.Mutex
	said string
}

func open(t *testing.T, flags ...string) *bed {
	t.Helper()
	b := &bed{t: t, bridge: &Bridge{}, left: make(chan struct{}, 100)}
	var err error
	b.neighbor, err = net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.neighbor.Close() })
	b.own = &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(ci.FreePort(t))}
	file := filepath.Join(t.TempDir(), "C.lnx")
	text := fmt.Sprintf("interface if0 10.1.0.2/24 %v\nneighbor 10.1.0.1 at %v via if0\n",
		b.own, b.neighbor.LocalAddr())
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	b.bridge.Flags(f)
	require.NoError(t, f.Parse(append([]string{"--bridge", file}, flags...)))
	require.NoError(t, b.bridge.Open(t.Context(), []*lnx.Config{nil}, b.tell))
	t.Cleanup(b.bridge.Close)
	_, rest, _ := strings.Cut(b.said, "#join=")
	b.at, _, _ = strings.Cut(rest, "/")
	return b
}

func (b *bed) tell(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	b.said += line + "\n"
	if strings.Contains(line, "has left") {
		b.left <- struct{}{}
	}
}

// page is the client of a bridge.
type page struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// ask sends a handshake with these headers, and returns the response.
func (b *bed) ask(path string, header ...string) (*page, *http.Response) {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.at)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(b.t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	q, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, "http://"+b.at+path, nil)
	require.NoError(b.t, err)
	header = append([]string{
		"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13",
		"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Origin", "http://localhost:8000",
		"Sec-WebSocket-Protocol", protocol + ", " + b.bridge.token,
	}, header...)
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	q.Host = q.Header.Get("Host")
	require.NoError(b.t, q.Write(conn))
	p := &page{b.t, conn, bufio.NewReader(conn)}
	r, err := http.ReadResponse(p.in, q)
	require.NoError(b.t, err)
	return p, r
}

// join returns a page that has joined as C.
func (b *bed) join() *page {
	b.t.Helper()
	p, r := b.ask("/C")
	require.Equal(b.t, http.StatusSwitchingProtocols, r.StatusCode)
	require.Equal(b.t, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", r.Header.Get("Sec-WebSocket-Accept"))
	op, hello := p.read()
	require.EqualValues(b.t, opText, op, "%s", hello)
	require.Contains(b.t, string(hello), `"network":"-- C.lnx --\ninterface if0`)
	return p
}

// frame returns a masked frame.
func frame(head byte, payload []byte) []byte {
	b := []byte{head, 0x80 | 127}
	b = binary.BigEndian.AppendUint64(b, uint64(len(payload)))
	if len(payload) <= 125 {
		b = []byte{head, 0x80 | byte(len(payload))}
	}
	b = append(b, 1, 2, 3, 4)
	for i, c := range payload {
		b = append(b, c^byte(i&3+1))
	}
	return b
}

func (p *page) write(frames ...[]byte) {
	p.t.Helper()
	_, err := p.conn.Write(bytes.Join(frames, nil))
	require.NoError(p.t, err)
}

// read returns the opcode and the payload of a frame.
func (p *page) read() (op byte, payload []byte) {
	p.t.Helper()
	head := make([]byte, 2)
	_, err := io.ReadFull(p.in, head)
	require.NoError(p.t, err)
	size := int(head[1])
	if size == 126 {
		long := make([]byte, 2)
		_, err = io.ReadFull(p.in, long)
		require.NoError(p.t, err)
		size = int(binary.BigEndian.Uint16(long))
	}
	payload = make([]byte, size)
	_, err = io.ReadFull(p.in, payload)
	require.NoError(p.t, err)
	return head[0] & 0x0f, payload
}

// closed returns the code and the reason of the bridge's close frame.
func (p *page) closed() string {
	p.t.Helper()
	op, payload := p.read()
	require.EqualValues(p.t, opClose, op, "%q", payload)
	return fmt.Sprint(binary.BigEndian.Uint16(payload), " ", string(payload[2:]))
}

// receive returns the next packet that arrives at the neighbor.
func (b *bed) receive() string {
	b.t.Helper()
	require.NoError(b.t, b.neighbor.SetReadDeadline(time.Now().Add(20*time.Second)))
	buf := make([]byte, 1<<16)
	n, _, err := b.neighbor.ReadFrom(buf)
	require.NoError(b.t, err)
	return string(buf[:n])
}

// TestEnd checks that nothing follows the bridge's close frame (RFC 6455 §5.5.1), and that a page
// can still send. If TCP reset the connection, a browser would not report the reason.
func TestEnd(t *testing.T) {
	t.Parallel()
	b := open(t)
	p := b.join()
	go b.bridge.Close()
	assert.Equal(t, "4000 `node net serve` has ended", p.closed())
	for range 20 {
		_, err := b.neighbor.WriteTo([]byte("late"), b.own)
		require.NoError(t, err)
		p.write(frame(0x80|opBinary, []byte("\x00late")))
	}
	p.write(frame(0x80|opClose, nil))
	_, err := p.in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

func TestPackets(t *testing.T) {
	t.Parallel()
	b := open(t)
	p := b.join()
	p.write(frame(0x80|opBinary, []byte("\x00one")))
	assert.Equal(t, "one", b.receive())
	p.write(frame(opBinary, []byte("\x00tw")), frame(0x80|opPing, []byte("x")))
	p.write(frame(0x80, []byte("o")))
	assert.Equal(t, "two", b.receive(), "in fragments")
	op, payload := p.read()
	assert.EqualValues(t, opPong, op)
	assert.Equal(t, "x", string(payload))
	large := strings.Repeat("l", 1400)
	_, err := b.neighbor.WriteTo([]byte(large), b.own)
	require.NoError(t, err)
	op, payload = p.read()
	assert.EqualValues(t, opBinary, op)
	assert.Equal(t, "\x00"+large, string(payload))

	_, other := b.ask("/C")
	assert.Equal(t, http.StatusSwitchingProtocols, other.StatusCode)
	forger, err := net.DialUDP("udp", nil, b.own)
	require.NoError(t, err)
	defer forger.Close()
	_, err = forger.Write([]byte("forged"))
	require.NoError(t, err)
	_, err = b.neighbor.WriteTo([]byte("true"), b.own)
	require.NoError(t, err)
	_, payload = p.read()
	assert.Equal(t, "\x00true", string(payload), "only the neighbor's packets arrive")

	b.bridge.Close()
	assert.Equal(t, "4000 `node net serve` has ended", p.closed())
}

// TestEndOfSendingPage checks that a page that sends after the close frame, and does not close, cannot
// keep the bridge for longer than a second.
func TestEndOfSendingPage(t *testing.T) {
	t.Parallel()
	b := open(t)
	p := b.join()
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.bridge.Close()
	}()
	assert.Contains(t, p.closed(), "4000 ")
	p.write(frame(0x80|opBinary, []byte("\x00late")))
	select {
	case <-done:
	case <-time.After(silence / 2):
		t.Fatal("the bridge waits for the page")
	}
}

func TestFlood(t *testing.T) {
	t.Parallel()
	b := open(t)
	p := b.join()
	many := bytes.Repeat(frame(0x80|opBinary, make([]byte, 100)), 1000)
	for range 20 {
		p.write(many)
	}
	_, err := b.neighbor.WriteTo([]byte("answer"), b.own)
	require.NoError(t, err)
	_, payload := p.read()
	assert.Equal(t, "\x00answer", string(payload))
}

// TestBadPages checks the handshake (RFC 6455 §4.2.2), the frames (RFC 6455 §5.2, §5.5) and the
// close codes (RFC 6455 §7.4.1).
func TestBadPages(t *testing.T) {
	t.Parallel()
	b := open(t, "--bridge-origin", "https://good.example")
	for want, header := range map[string][]string{
		`refused a page of "https://evil.example": ` + "`--bridge-origin https://evil.example` lets it": {
			"Origin", "https://evil.example",
		},
		`refused a page of "null"`: {"Origin", "null"},
		`Host "evil.example" is`:   {"Host", "evil.example"},
		"it needs a WebSocket":     {"Upgrade", "h2c"},
	} {
		_, r := b.ask("/C", header...)
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, r.StatusCode, 400)
		assert.Contains(t, string(text), want)
	}
	p, _ := b.ask("/C", "Sec-WebSocket-Protocol", protocol+", guess")
	assert.Contains(t, p.closed(), "4000 the token is wrong")
	p, _ = b.ask("/D")
	assert.Contains(t, p.closed(), "4000 no file of --bridge describes node D")
	p, _ = b.ask("/C", "Origin", "https://good.example")
	_, hello := p.read()
	assert.Contains(t, string(hello), "C.lnx")
	second, _ := b.ask("/C")
	assert.Contains(t, second.closed(), "4000 another page already runs node C")
	p.write(frame(0x80|opClose, nil))
	assert.Contains(t, p.closed(), "4000 the page was closed")

	binary := byte(0x80 | opBinary)
	for want, bytes := range map[string][]byte{
		"1009 a packet may have 65535 bytes": frame(binary, make([]byte, maxPacket+2)),
		"1002 a message must be the number":  frame(binary, []byte("\x01packet")),
		"1003 a message must be binary":      frame(0x80|opText, []byte("text")),
		"1002 a frame is out of order":       frame(0x80, []byte("more")),
		"1002 a frame is not masked":         {binary, 2, 0, 1},
		"1002 a frame has reserved bits":     frame(binary|0x40, []byte("\x00x")),
		"1002 a control frame is malformed":  frame(opPing, nil),
	} {
		p := b.again()
		p.write(bytes)
		assert.Contains(t, p.closed(), want)
	}
	p = b.again()
	_ = p.conn.Close() // leave without a close frame
	b.again()
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Contains(t, b.said, "C has left after 0s: the page was closed")
}

// again joins as soon as the previous page has left.
func (b *bed) again() *page {
	b.t.Helper()
	<-b.left
	return b.join()
}

// theHolder is how the error for a used address names the process that uses it: this process.
var theHolder = map[bool]string{
	true: fmt.Sprintf("process %d (", os.Getpid()), false: "the process that runs this node",
}[runtime.GOOS == "linux"]

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	b := open(t)
	process, err := net.ListenUDP("udp", b.own)
	require.NoError(t, err)
	defer process.Close()
	p, _ := b.ask("/C")
	assert.Contains(t, p.closed(), "stop "+theHolder)
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	const interfaces = "interface if0 10.0.0.1/24 127.0.0.1:1\n"
	good := write("A.lnx", interfaces+"neighbor 10.0.0.2 at 127.0.0.1:2 via if0\n")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "x"), 0o700))
	for want, b := range map[string]*Bridge{
		"no such file":                {names: []string{filepath.Join(dir, "none.lnx")}},
		"B.lnx:1:1":                   {names: []string{write("B.lnx", "interfac\n")}},
		"if0 has 0 neighbors":         {names: []string{write("C.lnx", interfaces)}},
		"has no TUN devices":          {names: []string{write("T.lnx", "interface t 10.0.0.1/24 tun:x\n")}},
		"another file describes node": {names: []string{good, good}},
		"must be https://SITE":        {names: []string{good}, origins: []string{"site/path"}},
		"must be a loopback":          {names: []string{good}, listen: "0.0.0.0:0"},
	} {
		err := b.Open(t.Context(), []*lnx.Config{nil}, t.Logf)
		require.ErrorContains(t, err, want)
		assert.Contains(t, err.Error(), "--bridge")
		b.Close()
	}
}

// A page cannot become a node that is running, or a node of another network, even if the networks
// have the same addresses.
func TestWrongNodeForAPage(t *testing.T) {
	t.Parallel()
	write := func(text string, ports ...any) (string, *lnx.Config) {
		name := filepath.Join(t.TempDir(), "P.lnx")
		text = fmt.Sprintf(text, ports...)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		c, err := lnx.Parse(filepath.Join(t.TempDir(), "N.lnx"), []byte(text))
		require.NoError(t, err)
		return name, c
	}
	const lines = "interface if0 10.0.0.%d/24 127.0.0.1:%d\nneighbor 10.0.0.%d at 127.0.0.1:%d via if0\n"
	own, near := int(ci.FreePort(t)), int(ci.FreePort(t))
	page, _ := write(lines, 1, own, 2, near)
	_, ours := write(lines, 2, near, 1, own)
	_, foreign := write(lines, 2, 1, 1, 2)
	_, twin := write(lines, 1, near, 2, own)
	ask := func(members ...*lnx.Config) error {
		b := &Bridge{names: []string{page}, listen: "0"}
		defer b.Close()
		return b.Open(t.Context(), members, t.Logf)
	}
	require.NoError(t, ask(ours))
	require.NoError(t, ask(nil), "the file of a node cannot be read")
	require.ErrorContains(t, ask(foreign), "none of its neighbors is a node of this network")
	require.ErrorContains(t, ask(twin), "10.0.0.1 is also the address of if0 of N")
	stopped := *twin
	stopped.Name = "P"
	require.NoError(t, ask(&stopped, ours), "the page takes its place")
	l, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: own})
	require.NoError(t, err)
	defer l.Close()
	require.ErrorContains(t, ask(ours), "stop "+theHolder)
}

// FuzzRead reads arbitrary frames.
func FuzzRead(f *testing.F) {
	f.Add(frame(0x80|opBinary, []byte("\x00packet")))
	f.Add(append(frame(opBinary, make([]byte, 300)), frame(0x80, make([]byte, 5))...))
	f.Add([]byte{0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		here, there := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, there) }()
		defer there.Close()
		s := newSocket(here, bufio.NewReader(bytes.NewReader(b)))
		defer here.Close()
		for {
			m, err := s.read()
			if err != nil {
				return
			}
			if len(m) > 1+maxPacket {
				t.Fatalf("%d bytes", len(m))
			}
		}
	})
}
