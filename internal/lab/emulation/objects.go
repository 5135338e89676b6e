package emulation

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
)

// Objects are the objects of a flow. Both ends generate them from the same seed. One end sends
// them, and the other end compares every byte.
type Objects struct {
	Items []workload.Item
	Order []int // numbers of the objects in the order in which they are sent or requested

	end  *End
	mu   sync.Mutex
	list []workload.Object
	left int
	bad  string
}

// Objects generates the objects of a flow that transfers objects.
func (e *End) Objects() (*Objects, error) {
	r := rand.New(rand.NewPCG(e.Start.Seed, uint64(e.Start.Flow)))
	items, order, err := workload.Items(*e.Flow.App.Objects, r)
	if err != nil {
		return nil, err
	}
	g := &Objects{Items: items, Order: order, end: e, left: len(items)}
	for i := range items {
		g.list = append(g.list, workload.Object{Name: items[i].Name, Size: len(items[i].Data)})
	}
	return g, nil
}

// Got records received bytes of an object, from offset at on. It returns false if they differ from
// the object.
func (g *Objects) Got(i, at int, p []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	o, item := &g.list[i], &g.Items[i]
	if o.Complete || at+len(p) > len(item.Data) || !bytes.Equal(item.Data[at:at+len(p)], p) {
		if g.bad == "" {
			g.bad = o.Name + " arrived corrupted"
		}
		return false
	}
	now := g.end.Now() - seconds(g.end.Start.Begin)
	if at == 0 {
		o.Began = now
	}
	g.end.Count(len(p))
	if at+len(p) == len(item.Data) {
		o.Complete, o.Verified, o.Done = true, true, now
		if g.left--; g.left == 0 {
			g.end.Complete()
		}
	}
	return true
}

// Report reports the received objects at the receiving end. err is the reason why objects are
// missing.
func (g *Objects) Report(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	whole := len(g.list) - g.left
	for _, row := range simulation.Objects(g.end.Flow.Name, seconds(g.end.Start.Begin), g.list) {
		g.end.Object(row)
	}
	g.end.Set(result.ObjectsDone, float64(whole))
	simulation.ObjectValues(g.end.seen.values, g.list)
	switch {
	case g.left == 0:
		g.end.Finish(true, "")
		return
	case g.bad != "":
	case err != nil:
		g.bad = err.Error()
	default:
		g.bad = "out of time"
	}
	g.end.Finish(false, fmt.Sprintf("%s: %d of %d objects", g.bad, whole, len(g.list)))
}

// sum returns the digest of an object, as in RDT's listings.
func (g *Objects) sum(i int) [32]byte { return sha256.Sum256(g.Items[i].Data) }
