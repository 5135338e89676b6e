package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// pipes is a listener in memory, so that a server can run in virtual time.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.conns <- far
	return near
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "bubble", Net: "unix"} }

// teller is an operator that records the messages it receives.
type teller struct {
	mu   sync.Mutex
	list map[int]func(control.Event)
	told []string // messages from the server
}

// Do returns only when its context ends. Until then a capture receives packets.
func (*teller) Do(ctx context.Context, request any) (any, error) {
	if r, ok := request.(control.Record); ok {
		r.Begun()
		for ctx.Err() == nil {
			r.Piece(make([]byte, 1<<10))
		}
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (o *teller) hear(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = append(o.told, text)
}

func (o *teller) heard() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.told
}

func (o *teller) Watch(f func(control.Event)) (stop func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.list)
	o.list[n] = f
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.list, n)
	}
}

func (o *teller) tell(e control.Event) {
	o.mu.Lock()
	var all []func(control.Event)
	for _, f := range o.list {
		all = append(all, f)
	}
	o.mu.Unlock()
	for _, f := range all {
		f(e)
	}
}

func (o *teller) watchers() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.list)
}

// inBubble serves a teller in virtual time.
func inBubble(t *testing.T, f func(t *testing.T, at *pipes, o *teller, s *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := &teller{list: map[int]func(control.Event){}}
		at := newPipes()
		s := New(Config{Nodes: map[string]control.Operator{"A": o}, Tell: o.hear})
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(&Listener{Listener: at}) }()
		f(t, at, o, s)
		s.Close()
		require.NoError(t, <-ended)
	})
}

// request sends the request line and the headers.
func request(t *testing.T, c net.Conn, text string, header ...string) *bufio.Reader {
	t.Helper()
	lines := append([]string{text + " HTTP/1.1", "Host: x"}, header...)
	_, err := io.WriteString(c, strings.Join(lines, "\r\n")+"\r\n\r\n")
	require.NoError(t, err)
	return bufio.NewReader(c)
}

// TestHangingClient checks that the server disconnects clients that do not read their answer, do
// not finish their request, or send nothing. It keeps no state of them.
func TestHangingClient(t *testing.T) {
	for _, as := range []string{typeEvents, typeLines} {
		inBubble(t, func(t *testing.T, at *pipes, o *teller, s *Server) {
			c := at.dial()
			defer c.Close()
			in := request(t, c, "GET /v1/nodes/A/events", "Accept: "+as)
			resp, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			defer resp.Body.Close()
			synctest.Wait()
			require.Equal(t, 1, o.watchers())
			began := time.Now()
			o.tell(control.Message{Text: strings.Repeat("x", 1<<16)}) // the client does not read the event
			synctest.Wait()
			assert.Equal(t, pauses, time.Since(began), as)
			assert.Zero(t, o.watchers())
			assert.Empty(t, s.jobs.of("A"))
			assert.Equal(t, []string{
				"stream 1 (events) closed: its reader has stalled for 10m0s",
			}, o.heard())
		})
	}
	inBubble(t, func(t *testing.T, at *pipes, o *teller, s *Server) {
		c := at.dial()
		resp, err := http.ReadResponse(request(t, c, "GET /v1/nodes/A/capture"), nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, resp.StatusCode)
		<-time.After(pauses - time.Second) // virtual time: the test does not wait
		assert.Len(t, s.jobs.of("A"), 1, "it may still be read")
		<-time.After(2 * time.Second)
		assert.Empty(t, s.jobs.of("A"))
		assert.Equal(t, []string{
			"stream 1 (capture) closed: its reader has stalled for 10m0s",
		}, o.heard())
		require.NoError(t, c.Close())
	})
	inBubble(t, func(t *testing.T, at *pipes, o *teller, _ *Server) {
		c := at.dial()
		request(t, c, "GET /v1/nodes/A/events")
		synctest.Wait()
		require.NoError(t, c.Close())
		synctest.Wait()
		assert.Empty(t, o.heard(), "a client that leaves is no event")
	})
	inBubble(t, func(t *testing.T, at *pipes, _ *teller, _ *Server) {
		c := at.dial()
		defer c.Close()
		_, err := io.WriteString(c, "GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		began := time.Now()
		<-time.After(hangs - time.Second) // virtual time: the test does not wait
		_, err = io.ReadFull(c, make([]byte, 1))
		require.NoError(t, err, "it may still be read")
		<-time.After(2 * time.Second)
		_, err = io.Copy(io.Discard, c)
		require.NoError(t, err)
		assert.Equal(t, hangs+time.Second, time.Since(began), "no more")
	})
	for name, text := range map[string]string{
		"no header": "GET /v1 HTTP/1.1\r\nHost: x\r\n",
		"no body":   "POST /v1/nodes/A/commands/routes HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
		"no file":   "POST /v1/transfers HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
		"nothing":   "",
	} {
		inBubble(t, func(t *testing.T, at *pipes, _ *teller, _ *Server) {
			c := at.dial()
			defer c.Close()
			_, err := io.WriteString(c, text)
			require.NoError(t, err)
			began := time.Now()
			_, err = io.Copy(io.Discard, c) // reads to the end
			require.NoError(t, err)
			assert.LessOrEqual(t, time.Since(began), bodyTime+idleTime, name)
			assert.GreaterOrEqual(t, time.Since(began), headerTime, name)
		})
	}
}

// TestHangingNode checks that a node that does not answer is missing from the list of nodes, and
// blocks no client.
func TestHangingNode(t *testing.T) {
	inBubble(t, func(t *testing.T, at *pipes, _ *teller, s *Server) {
		c := at.dial()
		defer c.Close()
		began := time.Now()
		resp, err := http.ReadResponse(request(t, c, "GET /v1/nodes"), nil)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, "[]\n", string(text))
		assert.Equal(t, askTime, time.Since(began))

		t.Log("# requests to it fail")
		for _, path := range []string{"/v1/nodes/A", "/v1/nodes/A/routes", "/v1/nodes/A/counters"} {
			began = time.Now()
			resp, err = http.ReadResponse(request(t, c, "GET "+path), nil)
			require.NoError(t, err)
			text, err = io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.Equal(t, http.StatusBadGateway, resp.StatusCode)
			assert.Contains(t, string(text), `"A: the node does not answer within 10s"`)
			assert.Equal(t, hangs, time.Since(began))
		}

		t.Log("# and so do commands, except those that keep running")
		for _, as := range []string{typeJSON, typeLines} {
			began = time.Now()
			resp, err = http.ReadResponse(request(t, c, "POST /v1/nodes/A/commands/set-link",
				"Accept: "+as), nil)
			require.NoError(t, err)
			text, err = io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.Contains(t, string(text), `"A: the node does not answer within 10s"`)
			assert.Contains(t, string(text), "node-gone")
			assert.Equal(t, hangs, time.Since(began))
		}
		request(t, c, "POST /v1/nodes/A/commands/ping")
		<-time.After(time.Hour) // virtual time: the test does not wait
		synctest.Wait()
		assert.Len(t, s.jobs.of("A"), 1)
	})
}

// TestKeepAlivesOfAnIdlePage checks that a page gets keep-alives all night, and then the next
// event.
func TestKeepAlivesOfAnIdlePage(t *testing.T) {
	inBubble(t, func(t *testing.T, at *pipes, o *teller, s *Server) {
		c := at.dial()
		in := request(t, c, "GET /v1/nodes/A/events")
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		lines := make(chan string, 1<<16)
		go func() {
			scan := bufio.NewScanner(resp.Body)
			for scan.Scan() {
				if scan.Text() != "" {
					lines <- scan.Text()
				}
			}
			close(lines)
		}()
		<-time.After(10 * time.Hour) // virtual time: the test does not wait
		synctest.Wait()
		assert.Len(t, lines, int(10*time.Hour/quiet))
		assert.Equal(t, ":", <-lines)
		for len(lines) > 0 {
			<-lines
		}
		o.tell(control.Message{Text: "good morning"})
		synctest.Wait()
		assert.Equal(t, "id: 1", <-lines)
		assert.Equal(t, "event: message", <-lines)
		assert.Equal(t, `data: {"text":"good morning"}`, <-lines)
		require.NoError(t, c.Close()) // the page is closed
		synctest.Wait()
		assert.Zero(t, o.watchers())
		assert.Empty(t, s.jobs.of("A"))
	})
}

// TestIdleConnectionsDoNotExcludeClients checks that idle connections do not exclude clients. The
// server closes the oldest at once if there are many, and the others when their time to send a
// header is over.
func TestIdleConnectionsDoNotExcludeClients(t *testing.T) {
	inBubble(t, func(t *testing.T, at *pipes, _ *teller, _ *Server) {
		began := time.Now()
		var idle []net.Conn
		for range 600 {
			idle = append(idle, at.dial())
		}
		c := at.dial()
		resp, err := http.ReadResponse(request(t, c, "GET /v1"), nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, resp.StatusCode)
		assert.Zero(t, time.Since(began), "a client does not wait")
		for _, c := range idle {
			_, err := c.Read(make([]byte, 1))
			require.Error(t, err)
		}
		assert.LessOrEqual(t, time.Since(began), headerTime+time.Second)
		for _, c := range append(idle, c) {
			require.NoError(t, c.Close())
		}
	})
}

// TestConnectionLimit checks that a client beyond the limit gets an error.
func TestConnectionLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, at *pipes, _ *teller, _ *Server) {
		ask := func() (net.Conn, int) {
			c := at.dial()
			resp, err := http.ReadResponse(request(t, c, "GET /v1"), nil)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			return c, resp.StatusCode
		}
		var open []net.Conn
		for range maxClients {
			c, status := ask()
			require.Equal(t, http.StatusOK, status)
			open = append(open, c)
		}
		c, status := ask()
		assert.Equal(t, http.StatusServiceUnavailable, status)
		require.NoError(t, open[0].Close())
		synctest.Wait()
		last, status := ask()
		assert.Equal(t, http.StatusOK, status)
		for _, c := range append(open[1:], c, last) {
			require.NoError(t, c.Close())
		}
	})
}

// TestRequestLimit checks that requests beyond the limit are rejected and running ones continue.
func TestRequestLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, at *pipes, _ *teller, s *Server) {
		var open []net.Conn
		for range maxRunning {
			c := at.dial()
			request(t, c, "POST /v1/nodes/A/commands/routes")
			open = append(open, c)
			synctest.Wait()
		}
		synctest.Wait()
		assert.Len(t, s.jobs.of("A"), maxRunning)
		c := at.dial()
		resp, err := http.ReadResponse(request(t, c, "POST /v1/nodes/A/commands/routes"), nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Contains(t, string(body), fmt.Sprintf("too many concurrent requests: %d are running", maxRunning))
		for _, c := range append(open, c) {
			require.NoError(t, c.Close())
		}
		synctest.Wait()
		assert.Empty(t, s.jobs.of("A"), "they end with their clients")
	})
}
