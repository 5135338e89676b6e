package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
	"github.com/tidepool-net/tidepool/internal/ip"
	protocol "github.com/tidepool-net/tidepool/internal/rip"
)

const (
	adaToken = "ada-token-0123456"
	bobToken = "bob-token-0123456"
)

// class is a hub in a synctest bubble. Its students' nodes are connected by pipes instead of UDP.
type class struct {
	*Hub
	t     *testing.T
	mu    sync.Mutex
	ends  map[netip.AddrPort]*tidepool.PipeEnd
	nodes []*tidepool.Node
}

func newClass(t *testing.T, cfg Config) *class {
	t.Helper()
	c := &class{t: t, ends: map[netip.AddrPort]*tidepool.PipeEnd{}}
	if cfg.Students == nil {
		cfg.Students = []Listed{{"ada", adaToken}, {"bob", bobToken}}
	}
	cfg.Public, cfg.Most = "127.0.0.1:5300", 3
	h, err := New(cfg, func(to netip.AddrPort, packet []byte) {
		c.mu.Lock()
		e := c.ends[to]
		c.mu.Unlock()
		if e != nil {
			_, _ = e.Write(packet)
		}
	})
	require.NoError(t, err)
	c.Hub = h
	return c
}

func (c *class) end() {
	for _, n := range c.nodes {
		assert.NoError(c.t, n.Crash())
	}
	for _, e := range c.ends {
		assert.NoError(c.t, e.Close())
	}
	assert.NoError(c.t, c.Close())
}

func (c *class) post(path, from string, form url.Values) (int, string) {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.RemoteAddr = from
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// start makes a student join, and starts a node with the .lnx file from the hub.
func (c *class) start(token, grammar string, at netip.AddrPort) *tidepool.Node {
	c.t.Helper()
	code, text := c.post("/lnx", "127.0.0.1:1", url.Values{"token": {token}, "grammar": {grammar}})
	require.Equal(c.t, http.StatusOK, code, text)
	code, said := c.post("/join", at.Addr().String()+":1", url.Values{"token": {token}})
	require.Equal(c.t, http.StatusOK, code, said)
	inner, outer := tidepool.Pipe(0)
	c.mu.Lock()
	c.ends[at] = outer
	c.mu.Unlock()
	iface := "hub"
	if grammar != "new" {
		iface = "if0"
	}
	f := tidepool.File{
		Path: "student.lnx", Text: []byte(text),
		Links: map[string]io.ReadWriteCloser{iface: inner},
	}
	n, err := f.Open()
	require.NoError(c.t, err)
	c.nodes = append(c.nodes, n)
	go func() {
		b := make([]byte, 65536)
		for {
			n, err := outer.Read(b)
			if err != nil {
				return
			}
			c.Receive(at, b[:n])
		}
	}()
	return n
}

var (
	adaAt = netip.MustParseAddrPort("192.0.2.1:5001")
	bobAt = netip.MustParseAddrPort("192.0.2.2:5002")
)

// Two students of different years join, RIP converges, and one sends a file to the other.
func TestClass(t *testing.T) {
	for _, grammars := range [][2]string{{"new", "new"}, {"new", "2013"}, {"2018", "2013"}} {
		t.Run(grammars[0]+" and "+grammars[1], func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newClass(t, Config{})
				defer c.end()
				ada := c.start(adaToken, grammars[0], adaAt)
				bob := c.start(bobToken, grammars[1], bobAt)
				time.Sleep(25 * time.Second)
				r, err := ada.Ping(t.Context(), "10.77.2.2", tidepool.PingOptions{})
				require.NoError(t, err)
				assert.Equal(t, 1, r.Received)

				ln, err := bob.Listen("tcp", "10.77.2.2:80")
				require.NoError(t, err)
				got := make(chan int64, 1)
				go func() {
					conn, err := ln.Accept()
					if !assert.NoError(t, err) {
						got <- 0
						return
					}
					n, err := io.Copy(io.Discard, conn)
					assert.NoError(t, err)
					assert.NoError(t, conn.Close())
					got <- n
				}()
				conn, err := ada.Dial("tcp", "10.77.2.2:80")
				require.NoError(t, err)
				_, err = conn.Write(make([]byte, 100_000))
				require.NoError(t, err)
				require.NoError(t, conn.Close())
				assert.EqualValues(t, 100_000, <-got)
				time.Sleep(time.Second)
				synctest.Wait()

				v := c.View()
				require.Len(t, v.Students, 2)
				a, b := v.Students[0], v.Students[1]
				assert.Equal(t, "both-ways", a.To[1].Reach)
				assert.Equal(t, "both-ways", b.To[0].Reach)
				assert.Equal(t, "self", a.To[0].Reach)
				assert.EqualValues(t, 100_000, a.To[1].Bytes)
				assert.EqualValues(t, 1, a.To[1].Completed)
				assert.Zero(t, a.To[1].Repeats)
				assert.Zero(t, b.To[0].Bytes)
				assert.Zero(t, b.To[0].Completed)
				for _, s := range v.Students {
					assert.False(t, s.Ping.IsZero(), s.Name)
					assert.False(t, s.RIP.Request.IsZero(), s.Name)
					assert.Less(t, v.Time.Sub(s.RIP.Response), 10*time.Second, s.Name)
					assert.Empty(t, s.Refused, s.Name)
				}
				assert.Equal(t, grammars[1] != "new", b.RIP.OldSize)
				assert.Zero(t, v.UnknownSources)
			})
		})
	}
}

func packet(src, dst string, protocol uint8, payload []byte) []byte {
	h := ip.Header{
		TTL: 16, Protocol: protocol,
		Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst),
		TotalLen: ip.HeaderLen + len(payload),
	}
	return append(h.Append(nil), payload...)
}

// The hub refuses and counts packets that a student must not send.
func TestRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClass(t, Config{Rate: 50})
		defer c.end()
		own := packet("10.77.1.2", "10.77.1.1", 0, nil)
		refused := func(who string) map[string]uint64 {
			for _, s := range c.View().Students {
				if s.Name == who {
					return s.Refused
				}
			}
			t.Fatal(who)
			return nil
		}
		c.Receive(adaAt, own)
		assert.EqualValues(t, 1, refused("ada")[refusedAddress], "has not joined")
		_, _ = c.post("/join", "192.0.2.1:999", url.Values{"token": {adaToken}})
		c.Receive(bobAt, own)
		assert.EqualValues(t, 2, refused("ada")[refusedAddress], "another machine")
		c.Receive(adaAt, packet("10.77.1.3", "10.77.1.1", 0, nil))
		assert.EqualValues(t, 3, refused("ada")[refusedAddress], "not the host")
		c.Receive(adaAt, own)
		assert.True(t, c.View().Students[0].Joined)
		c.Receive(netip.MustParseAddrPort("192.0.2.1:7"), own)
		assert.EqualValues(t, 4, refused("ada")[refusedAddress], "another port")
		c.Receive(bobAt, packet("8.8.8.8", "10.77.1.1", 0, nil))
		c.Receive(bobAt, []byte("hello"))
		assert.EqualValues(t, 2, c.View().UnknownSources)

		time.Sleep(time.Second)
		six := make([]byte, 40)
		six[0], six[6], six[23], six[39] = 6<<4, 59, 1, 2 // from ::1 to ::2
		for _, x := range []struct {
			why string
			b   []byte
		}{
			{refusedSource, packet("10.77.2.2", "10.77.1.1", 0, nil)},
			{refusedSource, packet("10.77.1.1", "10.77.2.2", 0, nil)},
			{refusedSource, packet("8.8.8.8", "10.77.2.2", 0, nil)},
			{refusedFamily, six},
			{refusedMalformed, []byte{0x45}},
			{refusedMalformed, nil},
			{refusedSize, packet("10.77.1.2", "10.77.2.2", 0, make([]byte, 1381))},
			{refusedRIP, packet("10.77.1.2", "10.77.1.1", 200, []byte{0, 2, 0, 9})},
			{refusedRIPTo, packet("10.77.1.2", "10.77.2.2", 200, []byte{0, 1, 0, 0})},
		} {
			before := refused("ada")[x.why]
			c.Receive(adaAt, x.b)
			assert.Equal(t, before+1, refused("ada")[x.why], x.why)
		}
		before := c.View().Students[0].Packets
		for range 100 {
			c.Receive(adaAt, own)
		}
		assert.LessOrEqual(t, c.View().Students[0].Packets-before, uint64(50))
		assert.GreaterOrEqual(t, refused("ada")[refusedRate], uint64(50))
		assert.Empty(t, refused("bob"))
	})
}

// The hub removes a route to another student's subnet from a RIP message, and keeps the other
// routes.
func TestHijack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClass(t, Config{})
		defer c.end()
		_ = c.start(bobToken, "new", bobAt)
		_, _ = c.post("/join", "192.0.2.1:999", url.Values{"token": {adaToken}})
		prefixes := map[string]uint32{
			"10.77.1.128/25": 1, "10.77.1.0/26": 16, "10.77.2.0/25": 1, "10.77.2.2/32": 1,
			"0.0.0.0/0": 1, "10.77.3.0/24": 16, "10.0.0.0/8": 3,
		}
		m := protocol.Packet{Command: protocol.Response, EntrySize: protocol.EntrySize}
		for p, cost := range prefixes {
			m.Entries = append(m.Entries, protocol.Entry{Prefix: netip.MustParsePrefix(p), Cost: cost})
		}
		c.Receive(adaAt, packet("10.77.1.2", "10.77.1.1", 200, m.Append(nil)))
		time.Sleep(time.Second)
		synctest.Wait()
		v := c.View().Students[0]
		text, err := json.Marshal(v)
		require.NoError(t, err)
		assert.Contains(t, string(text), `"rtt_ms":null`, "not answered")
		assert.EqualValues(t, 4, v.Refused[refusedRoute])
		assert.Equal(t, []string{"10.77.1.128/25"}, v.RIP.Routes)
		routes, err := c.node.Routes()
		require.NoError(t, err)
		var learned []string
		for _, r := range routes {
			if r.Origin == "rip" {
				learned = append(learned, r.Prefix.String()+" "+r.Interface)
			}
		}
		assert.Equal(t, []string{"10.77.1.128/25 s1"}, learned)
	})
}

// A restarted hub knows the tokens, addresses and counters.
func TestRestart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "hub.json")
	synctest.Test(t, func(t *testing.T) {
		c := newClass(t, Config{State: file, Students: []Listed{{Name: "ada"}}})
		token, err := c.Add(Listed{Name: "bob"})
		require.NoError(t, err)
		assert.Len(t, token, 26)
		_, err = c.Add(Listed{Name: "BOB"})
		assert.EqualError(t, err, "student BOB already exists")
		_, err = c.Add(Listed{Name: "a b"})
		assert.ErrorContains(t, err, `name "a b": must be 1 to 32`)
		_, err = c.Add(Listed{Name: "carol"})
		require.NoError(t, err)
		_, err = c.Add(Listed{Name: "dan"})
		assert.EqualError(t, err, "student dan: the hub is full: at most 3 students")
		require.NoError(t, c.Remove("carol"))
		assert.EqualError(t, c.Remove("carol"), `no student is called "carol"`)
		_ = c.start(token, "new", bobAt)
		time.Sleep(time.Second)
		tokens, teacher := c.Tokens(), c.Teacher()
		c.end()

		c = newClass(t, Config{State: file, Students: []Listed{{Name: "ada"}}})
		defer c.end()
		assert.Equal(t, tokens, c.Tokens())
		assert.Equal(t, teacher, c.Teacher())
		v := c.View().Students[1]
		assert.True(t, v.Joined)
		assert.NotZero(t, v.Packets)
		c.Receive(bobAt, packet("10.77.2.2", "10.77.2.1", 0, nil))
		assert.Equal(t, v.Packets+1, c.View().Students[1].Packets)
		require.NoError(t, c.Reset("bob"))
		c.Receive(bobAt, packet("10.77.2.2", "10.77.2.1", 0, nil))
		assert.EqualValues(t, 1, c.View().Students[1].Refused[refusedAddress])
	})
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode().Perm(), "it has tokens")
	text, err := ReadFile(file, "Bob", FileForm{Grammar: "2013", Port: 7000})
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1:7000\n127.0.0.1:5300 10.77.2.2 10.77.2.1\n", text)
	require.NoError(t, os.WriteFile(file, []byte(`{"slots": 3}`), 0o600))
	_, err = ReadFile(file, "bob", FileForm{})
	assert.ErrorContains(t, err, "not a state file of a hub")
}

func TestWeb(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClass(t, Config{})
		defer c.end()
		report := func(token, body string) (int, string) {
			r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/report",
				strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			c.Handler().ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		good := `{"subject": "<script>alert(1)</script>", "checks": [
			{"name": "tcp/<b>one", "verdict": "fail"}, {"name": "two", "verdict": "pass"}]}`
		code, text := report(adaToken, good)
		assert.Equal(t, http.StatusOK, code)
		assert.Equal(t, "ada: 1 of the report's checks passed\n", text)
		for body, want := range map[string]string{
			"":               "not a report",
			good + "{}":      "data after the object",
			`{"checks": []}`: "the report has 0 checks",
			`{"checks": [{"name": "a", "verdict": "great"}]}`:       `unknown verdict "great"`,
			`{"checks": [{"name": "a\nb", "verdict": "pass"}]}`:     "the name of a check",
			`{"subject": "` + strings.Repeat("x", maxReport) + `"}`: "too large",
		} {
			code, text = report(adaToken, body)
			assert.Equal(t, http.StatusBadRequest, code)
			assert.Contains(t, text, want)
		}
		code, text = report("", good)
		assert.Equal(t, http.StatusForbidden, code)
		assert.Contains(t, text, "wrong token")

		w := httptest.NewRecorder()
		c.Handler().ServeHTTP(w, httptest.NewRequestWithContext(context.Background(),
			http.MethodGet, "/", nil))
		assert.Equal(t, http.StatusOK, w.Code)
		assert.Contains(t, w.Body.String(), "tcp/&lt;b&gt;one")
		assert.NotContains(t, w.Body.String(), "<b>")
		assert.NotContains(t, w.Body.String(), adaToken)
		w = httptest.NewRecorder()
		c.Handler().ServeHTTP(w, httptest.NewRequestWithContext(context.Background(),
			http.MethodGet, "/api/view", nil))
		assert.NotContains(t, w.Body.String(), adaToken)

		for _, x := range []struct {
			action, name, token string
			code                int
			want                string
		}{
			{"add", "eve", c.Teacher(), 200, "eve "},
			{"reset", "eve", c.Teacher(), 200, "eve has to join again"},
			{"remove", "eve", c.Teacher(), 200, "removed eve"},
			{"remove", "eve", c.Teacher(), 400, "no student is called"},
			{"tokens", "", c.Teacher(), 200, "ada " + adaToken},
			{"drop", "", c.Teacher(), 400, "must be add, remove"},
			{"tokens", "", adaToken, 403, "wrong token"},
			{"tokens", "", "", 403, "wrong token"},
		} {
			code, text := c.post("/teacher", "192.0.2.1:1", url.Values{
				"action": {x.action}, "name": {x.name}, "token": {x.token},
			})
			assert.Equal(t, x.code, code, x)
			assert.Contains(t, text, x.want)
		}
		for form, want := range map[string]string{
			"token=" + adaToken + "&port=0":    "port \"0\": must be 1 to 65535",
			"token=" + adaToken + "&grammar=x": `grammar "x"`,
			"token=no":                         "wrong token",
		} {
			values, err := url.ParseQuery(form)
			require.NoError(t, err)
			_, text := c.post("/lnx", "192.0.2.1:1", values)
			assert.Contains(t, text, want)
		}
		_, text = c.post("/join", "192.0.2.1:1", url.Values{"token": {adaToken}, "machine": {"x"}})
		assert.Contains(t, text, `machine "x": must be an IP address`)
	})
}

// A private hub shows its page only to clients with a token.
func TestPrivate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClass(t, Config{Private: true})
		defer c.end()
		for _, x := range []struct {
			basic, bearer string
			want          int
		}{
			{"", "", 401},
			{"wrong", "", 401},
			{"", "wrong", 401},
			{adaToken, "", 200},
			{"", bobToken, 200},
			{c.Teacher(), "", 200},
		} {
			for _, path := range []string{"/", "/api/view"} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
				if x.basic != "" {
					r.SetBasicAuth("any", x.basic)
				}
				if x.bearer != "" {
					r.Header.Set("Authorization", "Bearer "+x.bearer)
				}
				w := httptest.NewRecorder()
				c.Handler().ServeHTTP(w, r)
				assert.Equal(t, x.want, w.Code, x)
				assert.Equal(t, x.want == 401, !strings.Contains(w.Body.String(), "10.77.1.0/24"))
				assert.Equal(t, x.want == 401, w.Header().Get("WWW-Authenticate") != "")
			}
		}
		code, _ := c.post("/lnx", "192.0.2.1:1", url.Values{"token": {adaToken}})
		assert.Equal(t, http.StatusOK, code)
	})
}

func TestStudentsFile(t *testing.T) {
	t.Parallel()
	list, err := parseStudents("class.txt", "# class\nada "+adaToken+" # first\r\n\nbob\n")
	require.NoError(t, err)
	assert.Equal(t, []Listed{{"ada", adaToken}, {"bob", ""}}, list)
	_, err = parseStudents("class.txt", fmt.Sprintf("ada %s\nAda %[1]s\nbob short\nc/d\n"+
		"eve 0123456789abcdef x\n", adaToken))
	for _, want := range []string{
		"class.txt:2:1: ", "this student is already on line 1", "class.txt:2:5: ",
		"line 1 has the same token", "class.txt:3:5: ", "16 to 64 letters", "class.txt:4:1: ",
		"invalid name", "class.txt:5:22: ", "unexpected word",
	} {
		assert.ErrorContains(t, err, want)
	}
	for _, cfg := range []Config{
		{Public: "x"},
		{Public: "x:1", Most: 251},
		{Public: "x:1", Rate: -1},
		{Public: "x:1", Network: netip.MustParsePrefix("10.0.0.0/8")},
	} {
		_, err := New(cfg, nil)
		assert.Error(t, err)
	}
}
