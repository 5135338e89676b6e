package api

import (
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
)

// maxClients is how many connections a listener has at once, of whoever; others wait in its
// backlog. So there are file descriptors left for what the node does.
const maxClients = 512

// crowd is a listener that lets in no more than there is room for.
type crowd struct {
	net.Listener
	room chan struct{} // a token for each that is in
	once sync.Once
	over chan struct{}
}

func newCrowd(l net.Listener) *crowd {
	return &crowd{Listener: l, room: make(chan struct{}, maxClients), over: make(chan struct{})}
}

// Accept waits for room, and then for a connection.
func (c *crowd) Accept() (net.Conn, error) {
	select {
	case c.room <- struct{}{}:
	case <-c.over:
		return nil, net.ErrClosed
	}
	conn, err := c.Listener.Accept()
	if err != nil {
		<-c.room
	}
	return conn, err
}

// Close has Accept wait no more.
func (c *crowd) Close() error {
	c.once.Do(func() { close(c.over) })
	return c.Listener.Close()
}

// note is an http.Server's ConnState.
func (c *crowd) note(_ net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		<-c.room
	}
}

// telling is a writer of lines for who is told of what no client can be.
type telling func(text string)

func (f telling) Write(line []byte) (int, error) {
	f(strings.TrimSpace(string(line)))
	return len(line), nil
}

// errorLog is where package net/http complains; nil: where programs do.
func (s *Server) errorLog() *log.Logger {
	if s.tell == nil {
		return nil
	}
	return log.New(telling(s.tell), "", 0)
}
