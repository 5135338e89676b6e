package node

import (
	"context"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Bounds of HTTP.
const (
	maxServed      = 256 // connections of a server at a time; the others wait
	maxHeaderBytes = 64 << 10
	headerTimeout  = 30 * time.Second
	idleTimeout    = time.Minute
)

// serve answers HTTP on a port until its listener is closed.
func (n *Node) serve(r control.Serve) (control.Socket, error) {
	handler := http.Handler(http.HandlerFunc(n.frontPage))
	var root *os.Root
	if r.Dir != "" {
		var err error
		if root, err = os.OpenRoot(r.Dir); err != nil {
			return control.Socket{}, fmt.Errorf("serve: %w", err)
		}
		handler = http.FileServerFS(root.FS()) // a link out of the folder leads nowhere
	}
	l, err := n.Listen(netip.AddrPortFrom(netip.IPv4Unspecified(), r.Port), 0)
	if err != nil {
		if root != nil {
			_ = root.Close()
		}
		return control.Socket{}, fmt.Errorf("serve: port %d: %w", r.Port, inner(err))
	}
	server := &http.Server{
		Handler:           n.announced(r.Port, handler),
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	go func() {
		few := &fewAtATime{Listener: l, room: make(chan struct{}, maxServed)}
		_ = server.Serve(few) // ends with l
		_ = server.Close()
		if root != nil {
			_ = root.Close()
		}
	}()
	return n.socketInfo(l.sid)
}

// fewAtATime is a listener with a bound on the connections that are open.
type fewAtATime struct {
	*Listener
	room chan struct{}
}

// Accept waits for room, and then for a connection.
func (l *fewAtATime) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.done:
		return nil, l.opError("accept", net.ErrClosed)
	}
	c, err := l.AcceptTCP()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &served{Conn: c, leave: sync.OnceFunc(func() { <-l.room })}, nil
}

// served is a connection that makes room when it is closed.
type served struct {
	*Conn
	leave func()
}

// Close closes the connection.
func (c *served) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// frontPage is what a node without files shows: who it is, and who asked.
func (n *Node) frontPage(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	name := html.EscapeString(n.cfg.LNX.Name)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(w, "<!doctype html>\n<title>%s</title>\n<h1>%s</h1>\n"+
		"<p>A host of a virtual network. You are %s, and asked for %s.</p>\n<ul>\n",
		name, name, html.EscapeString(r.RemoteAddr), html.EscapeString(r.Host))
	faces, err := control.Ask(r.Context(), n.Operator(), control.Interfaces{})
	if err != nil {
		return // the node ends: so does the page
	}
	for _, f := range faces {
		_, _ = fmt.Fprintf(w, "<li>%s %v</li>\n", html.EscapeString(f.Name), f.Addr)
	}
	_, _ = io.WriteString(w, "</ul>\n")
}

// counted remembers what became of an answer.
type counted struct {
	http.ResponseWriter
	code  int
	bytes int64
}

func (c *counted) WriteHeader(code int) {
	c.code = code
	c.ResponseWriter.WriteHeader(code)
}

func (c *counted) Write(p []byte) (int, error) {
	k, err := c.ResponseWriter.Write(p)
	c.bytes += int64(k)
	return k, err
}

// Unwrap is for http.ResponseController.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// announced tells the operator of each request when it is answered.
func (n *Node) announced(port uint16, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &counted{ResponseWriter: w, code: http.StatusOK}
		h.ServeHTTP(c, r)
		n.say("serve %d: %s %s %s: %d, %d bytes",
			port, r.RemoteAddr, r.Method, r.URL.EscapedPath(), c.code, c.bytes)
	})
}

// fetch gets a page over the virtual network.
func (n *Node) fetch(ctx context.Context, r control.Fetch) (control.Page, error) {
	u, err := pageURL(r.URL)
	if err != nil {
		return control.Page{}, fmt.Errorf("fetch %s: %w", r.URL, err)
	}
	page := control.Page{URL: u.String(), Path: r.Path}
	start := time.Now()
	if err := n.fetchPage(ctx, &page); err != nil {
		return page, fmt.Errorf("fetch %s: %w", r.URL, err)
	}
	page.Seconds = time.Since(start).Seconds()
	return page, nil
}

// pageURL reads what an operator types.
func pageURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: want http://ADDR:PORT/PATH", control.ErrUsage)
	}
	if _, err := hostPort(u); err != nil {
		return nil, err
	}
	return u, nil
}

// hostPort is where a URL leads. There are no names on the virtual network.
func hostPort(u *url.URL) (to netip.AddrPort, err error) {
	port := u.Port()
	if port == "" {
		port = "80"
	}
	to, err = netip.ParseAddrPort(u.Hostname() + ":" + port)
	if u.Scheme != "http" || err != nil || !isHost(to.Addr()) || to.Port() == 0 {
		return to, fmt.Errorf("%w: want http://ADDR:PORT/PATH, the address of a host",
			control.ErrUsage)
	}
	return to, nil
}

func (n *Node) fetchPage(ctx context.Context, page *control.Page) error {
	transport := &http.Transport{
		DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeaderBytes,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			to, err := hostPort(&url.URL{Scheme: "http", Host: addr}) // or where it redirects to
			if err != nil {
				return nil, err
			}
			c, err := n.Dial(ctx, to)
			if err != nil {
				return nil, inner(err)
			}
			return c, nil
		},
	}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page.URL, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", control.ErrUsage, err)
	}
	answer, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return pageError(ctx, err)
	}
	defer answer.Body.Close()
	page.URL, page.Code, page.Status = answer.Request.URL.String(), answer.StatusCode, answer.Status
	page.Type = answer.Header.Get("Content-Type")
	if page.Path != "" {
		err = storePage(page, answer.Body)
	} else {
		page.Body, err = io.ReadAll(io.LimitReader(answer.Body, control.MaxPage))
		page.Bytes = int64(len(page.Body))
		if err == nil {
			var rest int64
			rest, err = io.Copy(io.Discard, answer.Body)
			page.Bytes += rest
		}
	}
	return pageError(ctx, err)
}

// storePage stores a page as recvfile stores a file.
func storePage(page *control.Page, body io.Reader) error {
	part := page.Path + ".part"
	f, err := createTarget(page.Path, part)
	if err != nil {
		return err
	}
	page.Bytes, err = io.Copy(f, body)
	if err = firstError(err, f.Close()); err != nil {
		return fmt.Errorf("%w (%d bytes are kept in %s)", err, page.Bytes, part)
	}
	return os.Rename(part, page.Path)
}

// pageError strips what net/http repeats of the request.
func pageError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if u, ok := err.(*url.Error); ok { //nolint:errorlint // the outermost alone
		err = u.Err
	}
	return inner(err)
}
