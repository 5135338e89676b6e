package simulation

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// requestBytes is the size of a request.
const requestBytes = 100

// request has the times of a request and of its complete response.
type request struct{ asked, done time.Duration }

// requester is the application that sends requests and receives responses.
type requester struct {
	flow *flow
	next clock.Time // earliest time of the next request
	shut bool
}

func (q *requester) Turn(now clock.Time, c *sim.Conn, e tcp.Event) {
	f := q.flow
	f.rx = c
	f.read(now, c)
	q.account(now)
	if e&tcp.Closed != 0 {
		f.close(now, c)
		c.Wake(clock.Never)
		return
	}
	switch {
	// The requester waits for the connection or for a response.
	case c.TCP().State() == tcp.StateSynSent || f.asked > len(f.requests):
	case f.asked == f.spec.App.Requests:
		f.complete(now)
		if !q.shut {
			q.shut = true
			c.CloseWrite()
		}
	case now < q.next:
		c.Wake(q.next)
	default:
		f.asked++
		f.asking = now
		c.Write(f.run.fill(requestBytes, 0))
	}
	if q.shut && c.EOF() {
		c.Close()
	}
}

func (q *requester) account(now clock.Time) {
	f := q.flow
	if f.asked == len(f.requests) || f.got.bytes < uint64(f.asked)*f.spec.App.Size {
		return
	}
	f.requests = append(f.requests, request{f.run.since(f.asking), f.run.since(now)})
	q.next = now.Add(f.spec.App.Gap)
}

// responder is the application that answers each request with the requested number of bytes.
type responder struct {
	flow       *flow
	requested  uint64 // number of received bytes of requests
	sent, owed uint64
	shut       bool
}

func (a *responder) Turn(now clock.Time, c *sim.Conn, e tcp.Event) {
	f := a.flow
	for n := c.Read(f.run.scratch); n > 0; n = c.Read(f.run.scratch) {
		a.requested += uint64(n)
	}
	a.owed = a.requested / requestBytes * f.spec.App.Size
	if e&tcp.Closed != 0 {
		f.close(now, c)
		return
	}
	for a.sent < a.owed {
		n := c.Write(f.run.fill(a.owed-a.sent, a.sent))
		if n == 0 {
			return
		}
		a.sent += uint64(n)
	}
	if c.EOF() && !a.shut {
		a.shut = true
		c.CloseWrite()
		c.Close()
	}
}
