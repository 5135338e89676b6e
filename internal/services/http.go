package services

import (
	"container/list"
	"context"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/node"
)

// These are limits of HTTP.
const (
	maxServed      = 256 // maximum number of connections of a server; see fewAtATime
	maxHeaderBytes = 64 << 10
	headerTimeout  = 30 * time.Second
	idleTimeout    = time.Minute
)

// serve answers HTTP requests on a port until its listener is closed.
func (h *Host) serve(ctx context.Context, r control.Serve) (control.Socket, error) {
	handler := http.Handler(http.HandlerFunc(h.frontPage))
	var root *files.Folder
	if r.Dir != "" {
		var err error
		if root, err = files.Of(ctx).Sub(r.Dir); err != nil {
			return control.Socket{}, fmt.Errorf("serve: %w", err)
		}
		handler = withDigests(root, http.FileServerFS(root))
	}
	l, err := h.node.TCP.Listen(h.node.AllAddrs(r.Port), 0)
	if err != nil {
		if root != nil {
			_ = root.Close()
		}
		return control.Socket{}, fmt.Errorf("serve: port %d: %w", r.Port, control.Reason(err))
	}
	server := &http.Server{
		Handler:           h.announced(r.Port, handler),
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	few := &fewAtATime{Listener: l, room: make(chan struct{}, maxServed)}
	server.ConnState = few.note
	go func() {
		_ = server.Serve(few) // returns when l closes
		_ = server.Close()
		if root != nil {
			_ = root.Close()
		}
	}()
	return l.Socket()
}

// fewAtATime is a listener with a connection limit. At the limit it closes the connection that has
// been idle longest.
type fewAtATime struct {
	*node.Listener
	room chan struct{}

	mu     sync.Mutex
	silent list.List // idle connections as *served, the longest idle first
}

// note updates the list of idle connections. It is http.Server's ConnState.
func (l *fewAtATime) note(conn net.Conn, state http.ConnState) {
	c, _ := conn.(*served)
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.silent != nil {
		l.silent.Remove(c.silent)
		c.silent = nil
	}
	if state == http.StateNew || state == http.StateIdle {
		c.silent = l.silent.PushBack(c)
	}
}

// evict closes the connection that has been idle longest.
func (l *fewAtATime) evict() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if oldest := l.silent.Front(); oldest != nil {
		c := l.silent.Remove(oldest).(*served)
		c.silent = nil
		_ = c.Close() // the connection's handler fails and returns
	}
}

// Accept waits until the limit permits a connection, then accepts one.
func (l *fewAtATime) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	default:
		l.evict()
		select {
		case l.room <- struct{}{}:
		case <-l.Done():
			return nil, net.ErrClosed
		}
	}
	c, err := l.AcceptTCP()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &served{Conn: c, conn: c, leave: sync.OnceFunc(func() { <-l.room })}, nil
}

// served is a connection that counts toward the limit until it is closed.
type served struct {
	net.Conn
	conn   *node.Conn // the wrapped connection
	leave  func()
	silent *list.Element // element in fewAtATime.silent; nil: the connection is not idle
}

// hangTime is how long a client may take to accept a piece of an answer.
const hangTime = 2 * time.Minute

// Write writes with a deadline, because a client may stop reading.
func (c *served) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(hangTime)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// CloseWrite sends a FIN. The server can still read.
func (c *served) CloseWrite() error { return c.conn.CloseWrite() }

// Close closes the connection.
func (c *served) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// frontPage is the page of a node without files: the node's name and interfaces, and the client.
func (h *Host) frontPage(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	name := html.EscapeString(h.name)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(w, "<!doctype html>\n<title>%s</title>\n<h1>%s</h1>\n"+
		"<p>A host of a virtual network. You are %s and asked for %s.</p>\n<ul>\n",
		name, name, html.EscapeString(r.RemoteAddr), html.EscapeString(r.Host))
	for _, f := range h.node.Ifaces() {
		if f.Name != "" {
			for _, a := range f.Addrs() {
				_, _ = fmt.Fprintf(w, "<li>%s %v</li>\n", html.EscapeString(f.Name), a)
			}
		}
	}
	_, _ = io.WriteString(w, "</ul>\n")
}

// counted records the status and size of an answer.
type counted struct {
	http.ResponseWriter
	code  int
	bytes int64
}

func (c *counted) WriteHeader(code int) {
	if c.code = code; code >= http.StatusMultipleChoices {
		c.Header().Del(reprDigest) // the body is not the file, so its digest does not apply
	}
	c.ResponseWriter.WriteHeader(code)
}

func (c *counted) Write(p []byte) (int, error) {
	k, err := c.ResponseWriter.Write(p)
	c.bytes += int64(k)
	return k, err
}

// Unwrap is for http.ResponseController.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// announced reports each answered request to the operator.
func (h *Host) announced(port uint16, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &counted{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(c, r)
		h.node.Watchers.Printf("serve %d: %s %s %s: %d, %d bytes",
			port, r.RemoteAddr, r.Method, r.URL.EscapedPath(), c.code, c.bytes)
	})
}
