package workload

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// EchoResult is the current result of a client.
type EchoResult struct {
	// Finished means that the whole echo arrived unchanged. Otherwise Failure has the reason.
	Finished bool
	Failure  string
	// Took is the document's completion time: from the first write to the last byte of the echo, or
	// to the end of the last pause if that is later.
	Took time.Duration
	// Written and Echoed are numbers of bytes. All echoed bytes were unchanged.
	Written, Echoed uint64

	// These are the packets that the client has sent during Took. Sent is the document's count, of
	// all packets. Data counts packets with bytes of the stream, Again counts the retransmissions
	// among them, and Acks counts packets without data. RCP's first packet, which opens the
	// connection without data, counts as Data.
	Sent, Data, Again, Acks uint64
	// Rounds counts the iterations of the client's send loop; 0 for TCP.
	Rounds uint64
	// Timeouts and Recoveries count TCP's timeouts and loss recoveries.
	Timeouts, Recoveries uint64
}

// Packets returns the number of different packets with data: the N of N(1+p)/(1-p), the closed form
// of the packets that a fence sends.
func (r *EchoResult) Packets() uint64 { return r.Data - r.Again }

// EchoApp is a client with its server.
type EchoApp struct {
	client *echoClient
	counts func(r *EchoResult) // adds the counters of the transport; frozen at the end
	result EchoResult
	over   bool
	// lastRound is the time at which a packet last left, over RCP.
	lastRound clock.Time
}

// Done reports whether the client has received its echo, or has failed.
func (a *EchoApp) Done() bool { return a.over }

// Result returns the current result of the client.
func (a *EchoApp) Result() EchoResult {
	r := a.result
	if !a.over {
		a.fill(&r)
		r.Failure = a.client.missing("not finished")
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

// checkEnd ends the run if the client has its whole echo, or if it cannot get the rest. err is the
// error of a closed connection. It reports whether the run is over.
func (a *EchoApp) checkEnd(closed bool, err error) bool {
	switch c := a.client; {
	case c.wrong:
		a.end(c.missing("an echoed byte differs from the sent byte"))
	case c.done():
		a.end("")
	case closed:
		a.end(c.missing(fmt.Sprint(err)))
	}
	return a.over
}

// missing adds the client's progress to the description of an error.
func (c *echoClient) missing(what string) string {
	return fmt.Sprintf("%s: %d of %d writes, %d of %d bytes echoed", what, c.writes, c.cfg.Writes,
		c.echoed, c.written)
}
