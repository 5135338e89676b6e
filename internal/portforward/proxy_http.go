package portforward

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// httpIdle is how long an HTTP client may keep a connection without a request.
const httpIdle = time.Minute

// serveHTTP serves a client whose first byte has been read. CONNECT opens a tunnel (RFC 9110
// §9.3.6); a request for an http URL is forwarded.
func (p *proxy) serveHTTP(f *flow, c *net.TCPConn, first byte) error {
	_ = c.SetDeadline(time.Time{})
	conn := &resumed{TCPConn: c, first: []byte{first}}
	l := &singleListener{conn: conn, ended: make(chan struct{})}
	h := &httpClient{proxy: p, flow: f, raw: c}
	h.forwarder = httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host },
		Transport: &http.Transport{
			DisableCompression: true, ResponseHeaderTimeout: time.Minute,
			DialContext: h.dial, MaxIdleConnsPerHost: 1, IdleConnTimeout: httpIdle,
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			h.keepError(err)
			refuseHTTP(w, err)
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: handshakeTimeout, IdleTimeout: httpIdle,
		MaxHeaderBytes: 64 << 10, ErrorLog: log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed || s == http.StateHijacked {
				l.end()
			}
		},
	}
	_ = server.Serve(l) // returns when the connection has ended
	h.tunnels.Wait()
	if t, ok := h.forwarder.Transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	_ = c.Close()
	return h.err
}

// httpClient is the connection of an HTTP client.
type httpClient struct {
	*proxy
	flow      *flow
	raw       *net.TCPConn
	forwarder httputil.ReverseProxy
	tunnels   sync.WaitGroup

	mu  sync.Mutex
	err error // first error of the connection
}

func (h *httpClient) keepError(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
	}
}

// ServeHTTP implements http.Handler.
func (h *httpClient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !h.allows(r):
		w.Header().Set("Proxy-Authenticate", `Basic realm="tidepool"`)
		http.Error(w, "wrong user or password", http.StatusProxyAuthRequired)
	case r.Method == http.MethodConnect:
		h.tunnels.Add(1)
		defer h.tunnels.Done()
		h.tunnel(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		h.forwarder.ServeHTTP(w, r)
	default:
		http.Error(w, "this is a proxy into a virtual network: it takes CONNECT and http URLs",
			http.StatusBadRequest)
	}
}

// allows checks the password of a request (RFC 9110 §11.7.2).
func (h *httpClient) allows(r *http.Request) bool {
	if h.user == "" {
		return true
	}
	text, ok := strings.CutPrefix(r.Header.Get("Proxy-Authorization"), "Basic ")
	given, err := base64.StdEncoding.DecodeString(text)
	return ok && err == nil &&
		subtle.ConstantTimeCompare(given, []byte(h.user+":"+h.password)) == 1
}

// tunnel relays between the client and a virtual host.
func (h *httpClient) tunnel(w http.ResponseWriter, r *http.Request) {
	host, port, err := splitTarget(r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	v, err := h.flow.dialHost(r.Context(), host, port)
	if err != nil {
		h.keepError(err)
		refuseHTTP(w, err)
		return
	}
	far := virtualEnd{v}
	hijacker, _ := w.(http.Hijacker)
	_, buffered, err := hijacker.Hijack()
	if err != nil {
		far.Abort()
		h.keepError(err)
		return
	}
	near := machineEnd{h.raw}
	_ = h.raw.SetDeadline(time.Time{})
	h.flow.onCut(func() { near.Abort(); far.Abort() })
	_, err = io.WriteString(h.raw, "HTTP/1.1 200 Connection established\r\n\r\n")
	early := make([]byte, buffered.Reader.Buffered())
	_, _ = io.ReadFull(buffered, early) // the bytes that the client sent after its request
	if _, failed := v.Write(early); err == nil && failed == nil {
		h.flow.forward.count(true, len(early))
		err = h.flow.forward.relay(near, far)
	} else {
		near.Abort()
		far.Abort()
	}
	if err != nil {
		h.keepError(err)
	}
}

func splitTarget(target string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(target)
	n, bad := strconv.ParseUint(text, 10, 16)
	if err != nil || bad != nil || n == 0 || host == "" {
		return "", 0, errors.New("the target must be HOST:PORT")
	}
	return host, uint16(n), nil
}

// dial connects to the host of an http URL.
func (h *httpClient) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	host, port, err := splitTarget(addr)
	if err != nil {
		return nil, err
	}
	v, err := h.flow.dialHost(ctx, host, port)
	if err != nil {
		return nil, err
	}
	return &countedConn{v, h.flow.forward}, nil
}

// refuseHTTP answers a request whose host cannot be reached: 504 after a timeout, otherwise 502
// (RFC 9110 §15.6.3, §15.6.5).
func refuseHTTP(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	if errors.Is(err, control.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
		status = http.StatusGatewayTimeout
	}
	http.Error(w, err.Error(), status)
}

// countedConn counts the bytes of a connection.
type countedConn struct {
	net.Conn
	forward *Forward
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.forward.count(false, n)
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.forward.count(true, n)
	return n, err
}

// resumed is a connection whose first byte has already been read.
type resumed struct {
	*net.TCPConn
	first []byte
}

func (r *resumed) Read(p []byte) (int, error) {
	if len(r.first) > 0 && len(p) > 0 {
		n := copy(p, r.first)
		r.first = r.first[n:]
		return n, nil
	}
	return r.TCPConn.Read(p)
}

// singleListener is a listener that accepts one connection, and then waits until it has ended.
type singleListener struct {
	conn  net.Conn
	ended chan struct{}
	once  sync.Once
}

func (l *singleListener) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.ended
	return nil, net.ErrClosed
}

func (l *singleListener) Close() error   { l.end(); return nil }
func (l *singleListener) Addr() net.Addr { return &net.TCPAddr{} }
func (l *singleListener) end()           { l.once.Do(func() { close(l.ended) }) }
