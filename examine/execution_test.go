package examine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// silent is a run in virtual time with a subject that never answers.
type silent struct {
	now  clock.Time
	sent map[clock.Time]int
}

func (r *silent) Now() clock.Time { return r.now }

func (r *silent) Send(int, []byte) error {
	r.sent[r.now]++
	return nil
}

func (r *silent) Receive(until clock.Time) (Arrival, bool) {
	r.now = max(r.now, until)
	return Arrival{}, false
}

func (*silent) Do(Command) error     { return nil }
func (*silent) Printed() string      { return "" }
func (*silent) File() ([]byte, bool) { return nil, false }
func (*silent) Ended() *Ending       { return nil }
func (*silent) Close()               {}

// stepsOf parses the steps of a check.
func stepsOf(t *testing.T, text string) *Check {
	t.Helper()
	p := &parser{file: "test", seen: map[string]bool{}}
	p.readSteps(text)
	require.Empty(t, p.errs)
	return &p.check
}

func newExecution(t *testing.T, run Run, steps string) *execution {
	t.Helper()
	x := &execution{
		check: stepsOf(t, steps), setup: setup(false), run: run, units: Units{RTT: leastRTT},
		kept: map[string]int64{}, began: run.Now(),
	}
	x.reset()
	return x
}

// A long ladder keeps the first and the last events, and shows that others are missing.
func TestLadder(t *testing.T) {
	t.Parallel()
	x := newExecution(t, &silent{}, "")
	const events = 3 * maxEvents
	for i := range events {
		x.note(EventSent, fmt.Sprint(i))
	}
	require.Len(t, x.ladder, maxEvents)
	const half = maxEvents / 2
	assert.Equal(t, "0", x.ladder[0].Text)
	assert.Equal(t, fmt.Sprint(half-1), x.ladder[half-1].Text)
	assert.Contains(t, x.ladder[half].Text, "not shown")
	assert.Equal(t, fmt.Sprint(events-half+1), x.ladder[half+1].Text)
	assert.Equal(t, fmt.Sprint(events-1), x.ladder[maxEvents-1].Text)
}

// Random packets are sent in small bursts, so that they fit into the socket buffer of a node.
func TestGarbageIsPaced(t *testing.T) {
	t.Parallel()
	run := &silent{sent: map[clock.Time]int{}}
	x := newExecution(t, run, "garbage 300")
	f, v := x.all()
	require.Equal(t, Pass, v, "%+v", f)
	sent := 0
	for at, n := range run.sent {
		assert.LessOrEqual(t, n, 25, "at %v", at)
		sent += n
	}
	assert.Equal(t, 300, sent)
}

// A failure lists the other segments that arrived.
func TestFailureListsOtherSegments(t *testing.T) {
	t.Parallel()
	check := stepsOf(t, "listen\nsend S\nexpect S. ack 2")
	o := execute(&Self{}, check, Units{RTT: leastRTT, RTO: defaultRTO})
	require.Equal(t, Fail, o.verdict)
	assert.Regexp(t, "^the stack did not send `S. ack 2` within 500ms, but `S. seq 0 ack 1 ",
		o.failure.Reason)
}
