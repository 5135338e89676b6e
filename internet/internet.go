// Package internet runs whole networks of tidepool's hosts and routers inside tests, with real TCP,
// and with faults at times that the test chooses:
//
//	synctest.Test(t, func(t *testing.T) {
//		w := internet.Start(t, `
//			link db1 r1 delay 20ms
//			link r1 db2 delay 5ms loss 1%
//		`)
//		ln, err := w.Host("db1").Listen("tcp", ":5432")
//		…
//		w.At(10*time.Second, w.Link("db1", "r1").Cut)
//		conn, err := w.Host("db2").Dial("tcp", "db1:5432")
//		…
//	})
//
// In a testing/synctest bubble the network runs in the bubble's time, and waiting takes no real
// time. Outside a bubble, it runs in the system's time. Hosts know each other by their names. Their
// connections and listeners implement the interfaces of package net. A program only needs to use a
// net.Listener, a net.PacketConn or a dial function from here instead of package net's own.
package internet

import (
	"context"
	"flag"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidepool-net/tidepool"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/topology"
)

// World is a network that runs during a test. When the test ends, its faults stop and its hosts are
// closed. With `go test -artifacts`, each host writes its packets to HOST-N.pcapng in the test's
// folder of artifacts. N counts the starts of the host.
type World struct {
	t     testing.TB
	seed  uint64
	began time.Time
	clock tidepool.Clock
	hosts []*Host
	links []*Link
	graph *topology.Graph

	stopClock func()
	watch     watching
	calls     atomic.Int64 // number of the program's calls, both begun and ended
	keeps     bool         // connections may be open at the end of the test
	planned   []fault      // faults planned by Faults
	// captures is the folder for the captures of all hosts; empty: no captures.
	captures string

	mu     sync.Mutex
	over   bool
	events []string      // faults that have happened
	timers []*time.Timer // timers of At
	acting sync.WaitGroup
	// groups are the groups of Partition, by address. Nil: there is no partition.
	groups atomic.Pointer[map[netip.Addr]int]
}

// Run starts the network of a .net file, or of the .lnx files of a folder, and waits until every
// host has a route to every other. Errors in the files end the test.
func Run(tb testing.TB, path string) *World {
	tb.Helper()
	return run(tb, path, *seed)
}

func run(tb testing.TB, path string, seed uint64) *World {
	tb.Helper()
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		text, err := files.Text(path, files.MaxText)
		if err != nil {
			tb.Fatalf("internet: %v", err)
		}
		return start(tb, path, text, seed)
	}
	names, err := filepath.Glob(filepath.Join(path, "*.lnx"))
	if err != nil || len(names) == 0 {
		tb.Fatalf("internet: %s has no .lnx files", path)
	}
	var list []topology.File
	for _, name := range names {
		text, err := files.Text(name, files.MaxText)
		if err != nil {
			tb.Fatalf("internet: %v", err)
		}
		list = append(list, topology.File{
			Name: strings.TrimSuffix(filepath.Base(name), ".lnx"), Text: text,
		})
	}
	return open(tb, path, list, nil, seed)
}

// Start is like Run for a network in the test's source, in the language of .net files. Each link is
// a line `link A B [WORD...]`, whose words are arguments of `impair`, such as `delay 20ms loss 1%`.
func Start(tb testing.TB, network string) *World {
	tb.Helper()
	return load(tb, network, *seed)
}

// load starts a network for Start and Test: an argument with blanks is the text of a network, any
// other argument is a path.
func load(tb testing.TB, network string, seed uint64) *World {
	tb.Helper()
	if strings.TrimSpace(network) == "" {
		tb.Fatalf("internet: the network is empty: give it links, such as `link a b delay 20ms`, " +
			"or the path of its file")
	}
	if !strings.ContainsAny(network, " \n") {
		return run(tb, network, seed)
	}
	return start(tb, "network of "+tb.Name(), []byte(network), seed)
}

// timers are the usual TCP timers (RFC 6298 §2). The defaults of .lnx files are for networks
// within one machine.
var timers = tidepool.TCP{
	RTOMin: 200 * time.Millisecond, RTOInitial: time.Second, RTOMax: time.Minute,
}

func start(tb testing.TB, path string, text []byte, seed uint64) *World {
	tb.Helper()
	plan, err := topology.Parse(path, text, operator.CheckWords)
	if err != nil {
		tb.Fatalf("internet: %v", err)
	}
	if len(plan.Machines) > 0 {
		tb.Fatalf("internet: %s: a test runs on one machine: remove `host %s ssh %s`", path,
			plan.Machines[0].Name, plan.Machines[0].SSH)
	}
	if plan.NamesAt == "" {
		plan.NamesAt = topology.NoNames
	}
	list, err := plan.Files()
	if err != nil {
		tb.Fatalf("internet: %s: %v", path, err)
	}
	return open(tb, path, list, &timers, seed)
}

// open starts the nodes of .lnx files.
func open(
	tb testing.TB, path string, list []topology.File, tcp *tidepool.TCP, seed uint64,
) *World {
	tb.Helper()
	w := &World{t: tb, seed: seed}
	if f := flag.Lookup("test.artifacts"); f != nil && f.Value.String() == "true" {
		w.captures = tb.ArtifactDir()
	}
	configs := make([]*lnx.Config, len(list))
	for i, f := range list {
		name := filepath.Join(path, f.Name+".lnx")
		c, err := lnx.Parse(name, f.Text)
		if err != nil {
			tb.Fatalf("internet: %v", err)
		}
		configs[i] = c
		w.hosts = append(w.hosts, newHost(w, f.Name, c, tidepool.File{
			Path: name, Text: f.Text, TCP: tcp, Clock: &w.clock,
		}))
	}
	w.graph = topology.From(path, configs)
	for _, edge := range w.graph.Links {
		w.connect(path, edge)
	}
	tb.Cleanup(w.end)
	w.stopClock = w.clock.Follow(seed)
	w.enter()
	for _, h := range w.hosts {
		if err := h.start(); err != nil {
			tb.Fatalf("internet: host %s: %v", h.name, err)
		}
	}
	w.converge()
	w.began = time.Now()
	return w
}

// connect makes the link for an edge. If an interface has no neighbor, the packets that it sends
// are lost.
func (w *World) connect(path string, edge topology.Edge) {
	w.t.Helper()
	if len(edge.Ends) > 2 {
		w.t.Fatalf("internet: %s: %d interfaces are on the link %v: want two", path,
			len(edge.Ends), edge.Subnet)
	}
	a, b := tidepool.Pipe(0)
	pipes := [2]*tidepool.PipeEnd{a, b}
	l := &Link{world: w}
	for k, end := range edge.Ends {
		if end.Note != "" {
			w.t.Fatalf("internet: %s: interface %s of %s is a TUN device: tests have none",
				path, end.Iface, w.hosts[end.Node].name)
		}
		h := w.hosts[end.Node]
		h.ends[end.Iface] = pipes[k]
		pipes[k].Filter(w.passes)
		h.sent[end.Iface] = newPackets()
		l.ends = append(l.ends, linkEnd{h, end.Iface, h.sent[end.Iface]})
	}
	if len(edge.Ends) == 1 {
		_ = b.Close() // packets sent here are lost
		return
	}
	w.links = append(w.links, l)
}

// convergence limits how long routing protocols may take at the start.
const convergence = 3 * time.Minute

// converge waits until every host has a route to every other host that is not behind a NAT.
func (w *World) converge() {
	w.t.Helper()
	for end := time.Now().Add(convergence); ; time.Sleep(50 * time.Millisecond) {
		from, to := w.unreached()
		if from == nil {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("internet: %s has no route to %s after %v", from.name, to.name, convergence)
		}
	}
}

// reachable returns the hosts to which a host should have routes: all except those behind other
// hosts' NATs.
func (w *World) reachable(from *Host) []*Host {
	if !slices.ContainsFunc(w.hosts, func(h *Host) bool { return len(h.nats) > 0 }) {
		return w.hosts
	}
	list := []*Host{from}
	for i := 0; i < len(list); i++ {
		for _, l := range w.links {
			for k, e := range l.ends {
				to := l.ends[1-k]
				if e.host == list[i] && !slices.Contains(list, to.host) &&
					!slices.Contains(to.host.nats, to.iface) {
					list = append(list, to.host)
				}
			}
		}
	}
	return list
}

// unreached returns two hosts without a route from one to the other; nil: there are no such hosts.
func (w *World) unreached() (from, to *Host) {
	for _, from := range w.hosts {
		routes, err := from.node.Routes()
		if err != nil {
			return from, from
		}
		for _, to := range w.reachable(from) {
			for _, a := range to.addrs {
				if to != from && !slices.ContainsFunc(routes, func(r tidepool.RouteInfo) bool {
					return r.Prefix.Contains(a)
				}) {
					return from, to
				}
			}
		}
	}
	return nil, nil
}

// end stops the faults, closes the hosts and waits for their programs.
func (w *World) end() {
	waits := ""
	if w.t.Failed() {
		waits = strings.TrimPrefix(w.waits(), "\n")
	}
	w.stop()
	w.within(&w.acting, "a function of At")
	for _, h := range w.hosts {
		w.within(&h.mains, "the program of host "+h.name)
	}
	w.stopClock()
	w.leave()
	if !w.keeps && !w.t.Failed() {
		w.reportLeaks()
	}
	switch {
	case w.t.Failed():
		w.t.Logf("internet: to repeat this: %s", repeat(w.t.Name(), w.seed, faultsFlag()...))
		if w.captures != "" {
			w.writeArtifacts(waits)
		}
	// with thousands of seeds, only the captures of failures are kept
	case w.captures != "" && *worker:
		_ = os.RemoveAll(w.captures)
	}
}

// stop stops the faults and closes the hosts.
func (w *World) stop() {
	w.mu.Lock()
	w.over = true
	for _, f := range w.timers {
		if f.Stop() {
			w.acting.Done()
		}
	}
	w.timers = nil
	w.mu.Unlock()
	for _, h := range w.hosts {
		h.stop()
	}
}

// ending limits how long programs may run after their hosts are closed.
const ending = time.Minute

// within waits for the goroutines of programs, whose calls now return net.ErrClosed.
func (w *World) within(running *sync.WaitGroup, what string) {
	ended := make(chan struct{})
	go func() { defer close(ended); running.Wait() }()
	limit := time.NewTimer(ending)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
		w.t.Errorf("internet: %s still runs %v after its calls have returned net.ErrClosed:\n\n%s",
			what, ending, stacks(inBubble))
	}
}

func (w *World) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// At calls f when d has passed since the network started, unless the test has ended before.
func (w *World) At(d time.Duration, f func()) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		w.t.Errorf("internet: At: the test has ended")
		return
	}
	w.acting.Add(1)
	w.timers = append(w.timers, time.AfterFunc(time.Until(w.began.Add(d)), func() {
		defer w.acting.Done()
		f()
	}))
}

// Seed returns the seed of the network's random choices: the value of the flag -internet.seed, or
// 1.
func (w *World) Seed() uint64 { return w.seed }

// Host returns the host or router with that name. An unknown name ends the test.
func (w *World) Host(name string) *Host {
	w.t.Helper()
	names := make([]string, len(w.hosts))
	for i, h := range w.hosts {
		if h.name == name {
			return h
		}
		names[i] = h.name
	}
	w.t.Fatalf("internet: no host %s: there are %s", name, strings.Join(names, ", "))
	return nil
}

// Link returns the link between two hosts or routers. If there is no such link, the test ends.
func (w *World) Link(a, b string) *Link {
	w.t.Helper()
	from, to := w.Host(a), w.Host(b)
	var names []string
	for _, l := range w.links {
		if l.joins(from, to) {
			return l
		}
		names = append(names, l.String())
	}
	w.t.Fatalf("internet: no link %s - %s: there are %s", a, b, strings.Join(names, ", "))
	return nil
}

// lookup returns the addresses of a host by its name, as net.Resolver.LookupNetIP does.
func (w *World) lookup(_ context.Context, network, name string) ([]netip.Addr, error) {
	i := slices.IndexFunc(w.hosts, func(h *Host) bool {
		return strings.EqualFold(h.name, strings.TrimSuffix(name, "."))
	})
	if i < 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	list := slices.Clone(w.hosts[i].addrs)
	return slices.DeleteFunc(list, func(a netip.Addr) bool {
		return network == "ip4" && !a.Is4() || network == "ip6" && a.Is4()
	}), nil
}
