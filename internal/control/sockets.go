package control

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// Sockets lists the sockets, ordered by number.
type Sockets struct {
	Answer[[]Socket]
	// Info adds each connection's internal state.
	Info bool `json:"info,omitempty"`
	// Timers adds each connection's timer, so two answers always differ.
	Timers bool `json:"timers,omitempty"`
}

// Socket is one socket: a listener, a connection or a program's UDP socket.
type Socket struct {
	SID    int            `json:"sid"`    // socket number; -1: a half-open connection of a listener
	Local  netip.AddrPort `json:"local"`  // local address; 0.0.0.0: every address
	Remote netip.AddrPort `json:"remote"` // remote address; 0.0.0.0:0 for a listener
	State  string         `json:"state"`  // state as RFC 9293 §3.3.2 names it (SYN_SENT), or UDP
	RecvQ  int            `json:"recv_q"` // bytes to read; for a listener: connections to accept
	SendQ  int            `json:"send_q"` // bytes not yet acknowledged; for a listener: the backlog
	// Program is set for a socket in the kernel, of a program that runs as this host.
	Program bool `json:"program,omitempty"`
	// Timer is nil if it was not requested, or no timer is running.
	Timer *Timer `json:"timer,omitempty"`
	Info  *Info  `json:"info,omitempty"`
}

// Timer is the running timer of a connection, as ss -o shows it.
type Timer struct {
	// Name is "on" for a retransmission, "persist" for a window probe, "keepalive" for a
	// keepalive probe or its failure, or "timewait".
	Name    string        `json:"name"`
	In      time.Duration `json:"in_ns"`
	Retries int           `json:"retries"` // retransmissions without an answer
}

// Info is a connection's internal state, like Linux's TCP_INFO as ss -ti shows it.
type Info = recovery.Info

// Listen opens a listener and accepts all connections. Each connection gets its own socket and an
// Accepted event.
type Listen struct {
	Answer[Socket]
	Port uint16 `json:"port"`
}

// Connect opens a connection and waits until it is established.
type Connect struct {
	Answer[Socket]
	Addr netip.Addr `json:"addr"`
	Port uint16     `json:"port"`
}

// Write writes to a connection and waits until all of it is in the send buffer.
type Write struct {
	Answer[Written]
	SID  int    `json:"sid"`
	Data []byte `json:"data"`
}

// Written is the result of a Write.
type Written struct {
	Bytes int `json:"bytes"`
}

// Read waits for data on a connection and reads up to N bytes.
type Read struct {
	Answer[Data]
	SID int `json:"sid"`
	N   int `json:"n"`
	// Full waits until all N bytes are received or the peer closes.
	Full bool `json:"full,omitempty"`
}

// Data is the result of a Read.
type Data struct {
	Bytes []byte `json:"bytes"`
	EOF   bool   `json:"eof"` // the peer has closed, and all data has been read
}

// Window returns both windows of a connection.
type Window struct {
	Answer[Windows]
	SID int `json:"sid"`
}

// Windows are the bytes that each end of a connection may still send.
type Windows struct {
	SID     int `json:"sid"`
	Send    int `json:"send"`    // window that the peer announced
	Receive int `json:"receive"` // window that this node announced
}

// Shutdown closes one direction of a connection or both.
type Shutdown struct {
	Answer[Nothing]
	SID int `json:"sid"`
	How How `json:"how"`
}

// How is the direction that a Shutdown closes.
type How string

// These are the directions of Shutdown.
const (
	ShutdownRead  How = "read"
	ShutdownWrite How = "write"
	ShutdownBoth  How = "both"
)

// Close closes a socket and returns at once. Written data is still sent.
type Close struct {
	Answer[Nothing]
	SID int `json:"sid"`
}

// Congestion changes a connection's congestion control, and returns the connection with its Info.
type Congestion struct {
	Answer[Socket]
	SID  int    `json:"sid"`
	Name string `json:"name"`
}

// ListenUDP opens a UDP socket. Received datagrams are Datagram events. A Write goes to the sender
// of the last datagram.
type ListenUDP struct {
	Answer[Socket]
	Port uint16 `json:"port"` // local port; 0: a free port
}

// SendUDP sends one datagram from a socket connected to Addr and Port, which the first call opens
// and later calls reuse. Replies are Datagram events, ICMP errors Undelivered events.
type SendUDP struct {
	Answer[DatagramSent]
	Addr netip.Addr `json:"addr"`
	Port uint16     `json:"port"`
	Data []byte     `json:"data"`
}

// DatagramSent contains the socket and the number of bytes that it sent.
type DatagramSent struct {
	SID   int `json:"sid"`
	Bytes int `json:"bytes"`
}
