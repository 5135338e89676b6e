package emulation

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shell starts a shell script as a child.
func shell(t *testing.T, text string, to chan<- childMessage) *child {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("skip: needs sh")
	}
	c, err := startChild(t.Context(), "the script", []string{sh, "-c", text}, to)
	require.NoError(t, err)
	c.delay = time.Millisecond
	return c
}

// A program that never reads its input does not block the run, although a pipe cannot hold all of
// the input. If a program's children keep its output open, they are killed with it.
func TestChildThatDoesNotReadIsKilled(t *testing.T) {
	to := make(chan childMessage, 1)
	c := shell(t, "sleep 1000; true", to)
	c.send(strings.Repeat("x", 1<<20))
	c.end()
	h := <-to
	assert.True(t, h.gone)
	assert.ErrorContains(t, h.err, "the script: signal: killed")
}

// A program that violates the protocol is reported at once, not after a timeout.
func TestChildThatViolatesTheProtocol(t *testing.T) {
	to := make(chan childMessage)
	c := shell(t, "echo hello; sleep 1000", to)
	h := <-to
	assert.True(t, h.gone)
	require.ErrorIs(t, h.err, ErrProtocol)
	assert.ErrorContains(t, h.err, `the script sent an invalid message: "hello"`)
	c.end()
}

// A second ready message has no effect. A program that never sends one is named in the error.
func TestReadyOnce(t *testing.T) {
	a, b := &child{name: "a"}, &child{name: "b", index: 1}
	r := &run{children: []*child{a, b}, reports: []*report{{}, {}}}
	for range 2 {
		require.NoError(t, r.take(childMessage{from: a, Message: &Message{Type: "ready"}}))
	}
	assert.Equal(t, "b", r.waitsFor((*report).isReady))
	require.NoError(t, r.take(childMessage{from: b, Message: &Message{Type: "ready"}}))
	assert.Empty(t, r.waitsFor((*report).isReady))
}

// A line that is printed before the run begins gets the time 0.
func TestLogBeforeTheRun(t *testing.T) {
	at := time.Duration(-1)
	o := &Options{Printed: func(d time.Duration, _ string) { at = d }}
	r := &run{options: o, reports: []*report{{}}}
	log := &Message{Type: "log", Text: "x"}
	require.NoError(t, r.take(childMessage{from: &child{}, Message: log}))
	assert.Zero(t, at)
}
