package iperf

import "github.com/tidepool-net/tidepool/internal/node"

// These are parts of the protocol that tests need to play the other end.

// Wire is a control connection.
type Wire struct{ wire }

// NewWire returns the control connection over c.
func NewWire(c *node.Conn) *Wire { return &Wire{wire{conn: c}} }

func (w *Wire) Conn() *node.Conn         { return w.conn }
func (w *Wire) Expect(s State) error     { return w.expect(s) }
func (w *Wire) Next() (State, error)     { return w.state(patience) }
func (w *Wire) Read(b []byte) error      { return w.read(b, patience) }
func (w *Wire) Receive() ([]byte, error) { return w.receive(MaxParams) }
func (w *Wire) Say(s State) error        { return w.say(s) }
func (w *Wire) Write(b []byte) error     { return w.write(b) }

// MaxGreetings is the limit of connections without a cookie.
const MaxGreetings = maxGreetings

// ErrGone is the error of a control connection that the other end has closed.
var ErrGone = errGone
