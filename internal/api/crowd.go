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

// Connection limits of a listener. They leave file descriptors for the node itself.
const (
	// maxClients is the limit of authenticated connections.
	maxClients = 512
	// maxStrangers is the limit of unauthenticated connections. At the limit, a new connection
	// closes the oldest. Clients with a token send it at once.
	maxStrangers = 256
)

// crowd is a listener that limits authenticated and unauthenticated connections.
type crowd struct {
	net.Listener

	mu        sync.Mutex
	strangers []net.Conn // unauthenticated, oldest first
	clients   map[net.Conn]struct{}
}

// Accept waits for a connection, which is unauthenticated until admit.
func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.strangers) >= maxStrangers {
		_ = c.strangers[0].Close()
		c.strangers = slices.Delete(c.strangers, 0, 1)
	}
	c.strangers = append(c.strangers, conn)
	return conn, nil
}

// admit records that a connection has sent the token.
func (c *crowd) admit(conn net.Conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.strangers, conn)
	switch {
	case i < 0:
		return nil // already admitted, or closed
	case len(c.clients) >= maxClients:
		return fmt.Errorf("%w: %d connections are open", errTooMany, maxClients)
	}
	c.strangers = slices.Delete(c.strangers, i, i+1)
	c.clients[conn] = struct{}{}
	return nil
}

// note is an http.Server's ConnState.
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clients, conn)
	if i := slices.Index(c.strangers, conn); i >= 0 {
		c.strangers = slices.Delete(c.strangers, i, i+1)
	}
}

type connKey struct{}

// withConn is an http.Server's ConnContext.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// admitting admits the connections of authenticated requests, up to the limit.
func (c *crowd) admitting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			if err := c.admit(conn); err != nil {
				w.Header().Set("Connection", "close")
				refuse(w, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// telling is a writer that passes lines to a function.
type telling func(text string)

func (f telling) Write(line []byte) (int, error) {
	f(strings.TrimSpace(string(line)))
	return len(line), nil
}

// errorLog returns a logger for package net/http; nil: its default.
func errorLog(tell func(text string)) *log.Logger {
	if tell == nil {
		return nil
	}
	return log.New(telling(tell), "", 0)
}
