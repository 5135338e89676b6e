package workload

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// EchoResult is the result of a client so far.
type EchoResult struct {
	// Finished says that the whole echo came back as it was written; Failure says what
	// happened if not.
	Finished bool
	Failure  string
	// Took is the document's time to completion: from the first write to the echo's last
	// byte, or the end of the last pause if that is later.
	Took time.Duration
	// Written and Echoed are bytes; all of those echoed are as they were written.
	Written, Echoed uint64

	// Packets of the client until then. Sent is the document's count: all of them. Data had bytes
	// of the stream, and Again of these were retransmissions; Acks had no data. RCP's first packet,
	// which opens the connection without data, counts as Data.
	Sent, Data, Again, Acks uint64
	// Rounds counts the iterations of the client's send loop; 0 for TCP.
	Rounds uint64
	// Timeouts and Recoveries are TCP's.
	Timeouts, Recoveries uint64
}

// Packets returns how many packets of data there were, each counted once: the N of the
// closed form N(1+p)/(1-p) of what a fence sends.
func (r *EchoResult) Packets() uint64 { return r.Data - r.Again }

// EchoApp is a client with its server.
type EchoApp struct {
	client *echoClient
	counts func(r *EchoResult) // what its transport counts; frozen at the end
	result EchoResult
	over   bool
	// lastRound is when something left last, over RCP.
	lastRound clock.Time
}

// Done reports whether the client has its echo, or will never have it.
func (a *EchoApp) Done() bool { return a.over }

// Result returns the result of the client so far.
func (a *EchoApp) Result() EchoResult {
	r := a.result
	if !a.over {
		a.fill(&r)
		r.Failure = a.client.missing("was not done")
	}
	return r
}

func (a *EchoApp) fill(r *EchoResult) {
	c := a.client
	r.Took, r.Written, r.Echoed = c.took(), c.written, c.echoed
	a.counts(r)
}

func (a *EchoApp) end(failure string) {
	if a.over {
		return
	}
	a.over = true
	a.fill(&a.result)
	a.result.Finished, a.result.Failure = failure == "", failure
}

// missing says how far the client has come, behind what has happened to it.
func (c *echoClient) missing(what string) string {
	return fmt.Sprintf("%s: %d of %d writes, %d of %d bytes echoed", what, c.writes, c.cfg.Writes,
		c.echoed, c.written)
}
