package convergence

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/rip"
)

// DistanceChange is a change of a router's distance to the lost network.
type DistanceChange struct {
	After  time.Duration `json:"after_ns"` // time since the network was lost
	Router int           `json:"router"`
	Cost   int           `json:"cost"` // cost of the router's route; rip.Infinity: unreachable
	Via    int           `json:"via"`  // router that advertised the route; -1: none
}

// Count is the result of counting to infinity.
type Count struct {
	Dialect  string           `json:"dialect"`
	Seed     uint64           `json:"seed"`
	Steps    []DistanceChange `json:"steps"`
	Over     time.Duration    `json:"over_ns"` // time after which no router had the route
	Messages Messages         `json:"messages"`
	Hash     string           `json:"hash"`
}

// countToInfinity runs a ring of three routers, in which each router learns the dead route from the
// one before it. Router 0 loses the network behind it. Its update reaches router 1, but not router
// 2. Router 2 then advertises the dead route to router 1. RFC 2453 §3.4.4: split horizon does not
// stop such a loop; it ends when the metric reaches infinity.
func countToInfinity(dialect rip.Dialect, seed uint64) (*Count, error) {
	g := ring(3)
	g.routers++
	g.links = append(g.links, [2]int{0, 3})
	w, err := build(g, seed, dialect)
	if err != nil {
		return nil, err
	}
	const (
		stub  = 3 // link that is lost
		toTwo = 2 // link from router 2 to router 0
	)
	r := Result{Name: "count"}
	t := w.effective()
	settle := 16*max(t.TriggerMax, 0) + 2*t.Periodic
	if err := w.phase(&r, &event{name: "start", limit: settle, do: func() {}}); err != nil {
		return nil, err
	}
	// The network is lost when the next update of router 2 is due before that of router 0.
	next := func(router int) time.Duration {
		return w.hosts[router].Stack().RIPs()[0].Info(w.Now()).NextUpdate
	}
	w.RunUntil(settle, func() bool { return next(2) < next(0) })
	c := &Count{Dialect: dialects[dialect], Seed: seed}
	lost, before := w.Now(), w.messages()
	for router := range 3 {
		w.hosts[router].Stack().RIPs()[0].Watch(func(n rip.Change) {
			w.observer.routeChanged(router, n)
			if linkOf(n.Prefix) != stub {
				return
			}
			b := DistanceChange{
				After: w.Now().Sub(lost), Router: router, Cost: rip.Infinity, Via: noRouter,
			}
			if !n.Gone {
				b.Cost, b.Via = n.Cost, int(w.observer.peers[router][n.Iface])
			}
			c.Steps = append(c.Steps, b)
		})
	}
	// What router 0 sends from its end of the link to router 2 is lost for a short time.
	toRouter0 := w.ends[toTwo][1]
	toRouter0.Cut(true)
	err = w.phase(&r, &event{
		name: "lost", limit: t.Timeout + t.Garbage + settle,
		do: func() {
			w.setDown(stub, true)
			w.Run(time.Millisecond)
			toRouter0.Cut(false)
		},
	})
	if err != nil {
		return nil, err
	}
	c.Over = w.observer.settled.Sub(lost)
	c.Messages = w.messages().minus(before)
	c.Hash = fmt.Sprintf("%016x", w.Hash())
	return c, nil
}
