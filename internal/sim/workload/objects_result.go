package workload

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// ObjectsResult is the result of a transfer so far.
type ObjectsResult struct {
	// Finished means that all objects have arrived unchanged. Otherwise Failure has the reason.
	Finished bool
	Failure  string
	// Took is the time from the beginning to the last byte of the last object, or until now.
	Took time.Duration
	// Objects are in the document's order, whatever the order in which they were sent.
	Objects []Object
	// Complete counts the objects that have arrived, and Bytes counts their bytes.
	Complete int
	Bytes    uint64

	// These are the server's packets. Sent counts all packets, Data counts those with bytes or ends
	// of objects, and Again counts the retransmissions among Data. SentBytes counts the payloads of
	// UDP or TCP, with retransmissions.
	Sent, Data, Again, SentBytes uint64
	// ClientSent counts the client's packets: acknowledgments and requests.
	ClientSent uint64
	// Timeouts counts packets of RDT that timed out, or timeouts of TCP. Recoveries counts early
	// retransmissions of RDT, or fast recoveries of TCP.
	Timeouts, Recoveries uint64
	// Damaged counts packets that failed RDT's own checksum. Overflowed counts packets that a full
	// socket buffer dropped.
	Damaged, Overflowed uint64
}

// Object is the result of an object's transfer. Times count from the beginning.
type Object struct {
	Name string
	Size int
	// Began is when the first byte of the object arrived, and Done is when the last one did.
	Began, Done time.Duration
	// Complete means that the whole object has arrived, and Verified means that it is unchanged.
	Complete, Verified bool
}

// ObjectsApp is a server of objects and its client.
type ObjectsApp struct {
	world   *sim.World
	items   []Item
	began   clock.Time
	counts  func(r *ObjectsResult) // fills in the counters of the arm; frozen at the end
	objects []Object
	left    int // number of objects that have neither arrived nor failed
	result  ObjectsResult
	over    bool
}

func newApp(client *sim.Host, items []Item) *ObjectsApp {
	w := client.World()
	a := &ObjectsApp{world: w, began: w.Now(), items: items}
	for i := range a.items {
		o := &a.items[i]
		a.objects = append(a.objects, Object{Name: o.Name, Size: len(o.Data)})
	}
	a.left = len(a.items)
	return a
}

// Done reports whether each object has arrived or has failed.
func (a *ObjectsApp) Done() bool { return a.over }

// Result returns the result of the transfer so far.
func (a *ObjectsApp) Result() ObjectsResult {
	r := a.result
	if !a.over {
		a.fill(&r)
		r.Failure = a.missing(&r, "not finished")
	}
	return r
}

func (a *ObjectsApp) fill(r *ObjectsResult) {
	r.Took = a.world.Now().Sub(a.began)
	r.Objects = append([]Object(nil), a.objects...)
	r.Complete, r.Bytes = 0, 0
	for i := range r.Objects {
		if o := &r.Objects[i]; o.Complete {
			r.Complete++
			r.Bytes += uint64(o.Size)
		}
	}
	a.counts(r)
}

func (a *ObjectsApp) missing(r *ObjectsResult, what string) string {
	return fmt.Sprintf("%s: %d of %d objects", what, r.Complete, len(a.items))
}

func (a *ObjectsApp) begin(i int, at clock.Time) { a.objects[i].Began = at.Sub(a.began) }

// complete records that an object has arrived, and whether it is unchanged.
func (a *ObjectsApp) complete(i int, at clock.Time, right bool) {
	o := &a.objects[i]
	o.Done, o.Complete, o.Verified = at.Sub(a.began), true, right
	if a.left--; a.left == 0 {
		a.end("")
	}
}

func (a *ObjectsApp) fail(why string) {
	a.result.Failure = cmp.Or(a.result.Failure, why)
	if a.left--; a.left == 0 {
		a.end(a.result.Failure)
	}
}

// end freezes the result. An empty failure means success if all objects are unchanged.
func (a *ObjectsApp) end(failure string) {
	if a.over {
		return
	}
	a.over = true
	r := &a.result
	a.fill(r)
	failure = cmp.Or(failure, r.Failure)
	for i := range r.Objects {
		if o := &r.Objects[i]; failure == "" && !o.Verified {
			failure = o.Name + " arrived corrupted"
		}
	}
	if r.Finished = failure == ""; !r.Finished {
		r.Failure = a.missing(r, failure)
	}
}
