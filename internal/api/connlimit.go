package api

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// These limits of a listener's connections leave file descriptors for the node itself.
const (
	// maxClients is the limit of authenticated connections.
	maxClients = 512
	// maxUnauthenticated is the limit of the other connections. At the limit, a new connection
	// closes the oldest one. Clients with a token send the token at once.
	maxUnauthenticated = 256
)

// connLimit is a listener that limits authenticated and unauthenticated connections.
type connLimit struct {
	net.Listener

	mu              sync.Mutex
	unauthenticated []net.Conn // connections without a token, oldest first
	clients         map[net.Conn]struct{}
}

// Accept waits for a connection. The connection counts as unauthenticated until admit.
func (c *connLimit) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unauthenticated) >= maxUnauthenticated {
		_ = c.unauthenticated[0].Close()
		c.unauthenticated = slices.Delete(c.unauthenticated, 0, 1)
	}
	c.unauthenticated = append(c.unauthenticated, conn)
	return conn, nil
}

// admit records that a connection has sent a valid token.
func (c *connLimit) admit(conn net.Conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.unauthenticated, conn)
	switch {
	case i < 0:
		return nil // already admitted, or closed
	case len(c.clients) >= maxClients:
		return fmt.Errorf("%w: %d connections are open", errTooMany, maxClients)
	}
	c.unauthenticated = slices.Delete(c.unauthenticated, i, i+1)
	c.clients[conn] = struct{}{}
	return nil
}

// note removes closed connections. It is an http.Server's ConnState.
func (c *connLimit) note(conn net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clients, conn)
	if i := slices.Index(c.unauthenticated, conn); i >= 0 {
		c.unauthenticated = slices.Delete(c.unauthenticated, i, i+1)
	}
}

type connKey struct{}

// withConn stores the connection in the context. It is an http.Server's ConnContext.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// admitting counts the connections of authenticated requests as authenticated, up to the limit.
func (c *connLimit) admitting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			if err := c.admit(conn); err != nil {
				w.Header().Set("Connection", "close")
				writeProblem(w, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// lineFunc is a writer that passes each line to a function.
type lineFunc func(text string)

func (f lineFunc) Write(line []byte) (int, error) {
	f(strings.TrimSpace(string(line)))
	return len(line), nil
}

// errorLog returns a logger for package net/http, or nil for the default one.
func errorLog(tell func(text string)) *log.Logger {
	if tell == nil {
		return nil
	}
	return log.New(lineFunc(tell), "", 0)
}
