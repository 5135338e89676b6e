package netctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// PartRequest is a request to a machine about its part of a network.
type PartRequest struct {
	State   string   `json:"state"`
	Network string   `json:"network"`
	Do      PartVerb `json:"do"`
	// PartUp and PartApply use the fields below.
	Source string            `json:"source,omitempty"`
	Files  map[string][]byte `json:"files,omitempty"` // files by node name
	Flags  PartFlags         `json:"flags"`
}

// PartVerb is the action that a PartRequest asks for.
type PartVerb string

// These are the actions.
const (
	PartUp     PartVerb = "up"
	PartApply  PartVerb = "apply"
	PartDown   PartVerb = "down"
	PartStatus PartVerb = "status"
)

// PartFlags are flags of `net up` that apply on every machine.
type PartFlags struct {
	Files string `json:"files"`
	User  string `json:"user,omitempty"`
	// OneProcess has the meaning of Plan.OneProcess.
	OneProcess bool `json:"one_process,omitempty"`
}

// PartAnswer is the answer to a PartRequest.
type PartAnswer struct {
	Now    time.Time `json:"now"` // time on the machine's clock
	Change *Change   `json:"change,omitempty"`
	Ending *Ending   `json:"ending,omitempty"`
	Status *Status   `json:"status,omitempty"`
	// Error says why the request failed. Problems are the errors in the nodes' files, if there are
	// any.
	Error    string          `json:"error,omitempty"`
	Problems json.RawMessage `json:"problems,omitempty"`
}

// PartError is the error of a request that failed on its machine.
type PartError struct{ Machine, Text string }

func (e *PartError) Error() string {
	return "host " + e.Machine + ": " + strings.ReplaceAll(e.Text, "\n", "; ")
}

// busyTime is how long a request waits for another one to finish.
const busyTime = 20 * time.Second

// Part executes a request on the machine that received it. Starting and stopping also end with ctx.
func (s *State) Part(ctx context.Context, r PartRequest, p Plan) (a PartAnswer, err error) {
	p.Name, p.Source = r.Network, r.Source
	for name, text := range r.Files {
		p.Nodes = append(p.Nodes, Member{Name: name, Text: text})
	}
	until(ctx, busyTime, func() bool {
		a, err = s.partOnce(ctx, r, p)
		return !errors.Is(err, ErrBusy)
	})
	a.Now = time.Now().Round(0)
	return a, err
}

func (s *State) partOnce(ctx context.Context, r PartRequest, p Plan) (a PartAnswer, err error) {
	switch r.Do {
	case PartUp, PartApply:
		done, err := s.bringUp(ctx, p, r.Do == PartApply)
		if err == nil {
			a.Change = &done
		}
		return a, err
	case PartDown:
		done, err := s.Down(ctx, r.Network)
		if errors.Is(err, ErrNoNetwork) {
			err = nil
		}
		a.Ending = &done
		return a, err
	case PartStatus:
		n, err := s.Network(r.Network)
		if err != nil {
			return a, err
		}
		status := n.Status(ctx)
		a.Status = &status
		return a, nil
	}
	return a, errors.New("unknown request " + string(r.Do))
}

func (n *Network) connection(m *Machine) *connection {
	return &connection{m, sshMaster{name: m.Name, ssh: m.SSH, dir: n.dir}, n}
}

func (n *Network) connections() (list []*connection) {
	for i := range n.Machines {
		list = append(list, n.connection(&n.Machines[i]))
	}
	return list
}

// join prepares the other machines of a plan, and calls leave for those of the record. If a machine
// of the plan fails, nothing has changed.
func (n *Network) join(ctx context.Context, p Plan, apply, fresh bool) error {
	before := n.connections()
	n.Machines = n.nextMachines(p, apply)
	if len(n.Machines) == 0 && len(before) == 0 {
		return nil
	}
	if fresh { // lets `net down` stop what an interrupted command started
		next := n.manifest
		next.Nodes = p.Nodes
		if err := n.save(next); err != nil {
			return fmt.Errorf("network %s: %w", p.Name, err)
		}
	}
	program, err := readProgram(p.Program)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	err = each(n.connections(), func(c *connection) error {
		if p.machine(c.Machine) == nil {
			return nil
		}
		return c.prepare(ctx, program, func(text string) {
			mu.Lock()
			defer mu.Unlock()
			p.Tell(text)
		})
	})
	if err != nil {
		if !fresh {
			err = errors.Join(err, errUnchanged)
		}
		return err
	}
	return each(before, func(c *connection) error { return n.leave(ctx, c) })
}

// leave stops all nodes on a machine that has left the network. On any other machine, it ends the
// forwarding to the nodes that are no longer there.
func (n *Network) leave(ctx context.Context, old *connection) error {
	i := slices.IndexFunc(n.Machines, func(m Machine) bool { return m.is(old.Machine) })
	if i < 0 {
		_, err := old.part(ctx, partTime, PartRequest{Do: PartDown})
		if err == nil {
			defer old.close(ctx).Close()
		}
		return err
	}
	for _, m := range old.Nodes {
		if !lists(n.Machines[i].Nodes, m.Name) {
			_ = old.forward(ctx, "cancel", m.Name) // the forward may not exist
			_ = os.Remove(n.Socket(m.Name))
		}
	}
	return nil
}

// is reports whether two machines are the same.
func (m *Machine) is(other *Machine) bool { return m.Name == other.Name && m.SSH == other.SSH }

// machine returns the plan's entry for a machine, or nil if the plan does not contain it.
func (p *Plan) machine(m *Machine) *Machine {
	if i := slices.IndexFunc(p.Machines, func(o Machine) bool { return o.is(m) }); i >= 0 {
		return &p.Machines[i]
	}
	return nil
}

func (p *Plan) remoteMembers() (list []Member) {
	for _, m := range p.Machines {
		list = append(list, m.Nodes...)
	}
	return list
}

// nextMachines returns the machines of the new record. Without apply, it removes no machine.
func (n *Network) nextMachines(p Plan, apply bool) (list []Machine) {
	for _, m := range p.Machines {
		if i := slices.IndexFunc(n.Machines, func(o Machine) bool { return o.is(&m) }); i >= 0 {
			old := &n.Machines[i]
			m.Folder, m.Program = old.Folder, old.Program
			for _, o := range old.Nodes {
				if !apply && !lists(m.Nodes, o.Name) {
					m.Nodes = append(slices.Clone(m.Nodes), o)
				}
			}
		}
		list = append(list, m)
	}
	for _, o := range n.Machines {
		if !apply && p.machine(&o) == nil {
			list = append(list, o)
		}
	}
	return list
}

// Crossing is a link between nodes on two machines.
type Crossing struct {
	From, To string     // names of nodes
	Addr     netip.Addr // address of To on the link
	About    string     // what to print if no packet arrives
}

// tryLinks sends packets over the links between machines if nodes were started or changed.
func (n *Network) tryLinks(ctx context.Context, p Plan, done *Change) error {
	if len(done.Started)+len(done.Restarted)+len(done.Reloaded) == 0 {
		return nil
	}
	errs := make([]error, len(p.Crossings))
	var wg sync.WaitGroup
	for i, x := range p.Crossings {
		wg.Go(func() {
			c, ctx, end := n.process(x.From).client(ctx, 2*linkTime)
			defer end()
			got, err := control.Ask(ctx, control.Operator(c), control.Ping{
				Addr: x.Addr, Count: 1, Interval: linkTime / linkPings, Deadline: linkTime,
			})
			if err == nil && got.Received == 0 {
				errs[i] = errors.New(x.About)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Each link is tried linkPings times within linkTime.
const (
	linkTime  = 3 * time.Second
	linkPings = 10
)

func (n *Network) bringParts(ctx context.Context, p Plan, apply bool, done *Change) error {
	verb := PartUp
	if apply {
		verb = PartApply
	}
	here, err := os.Hostname()
	if err != nil {
		return err
	}
	flags := p.PartFlags
	flags.OneProcess = n.OneProcess
	changes := make(chan *Change, len(n.Machines))
	err = each(n.connections(), func(c *connection) error {
		own := p.machine(c.Machine)
		if own == nil {
			return nil
		}
		files := map[string][]byte{}
		for _, m := range own.Nodes {
			files[m.Name] = m.Text
		}
		a, err := c.part(ctx, partTime, PartRequest{
			Do: verb, Source: here + ":" + p.Source, Files: files, Flags: flags,
		})
		if len(a.Problems) > 0 {
			return p.Place(c.Name, a.Problems)
		}
		if err != nil {
			return err
		}
		changes <- a.Change
		return c.forwardAll(ctx)
	})
	close(changes)
	for change := range changes {
		done.add(change)
	}
	return err
}

func (c *Change) add(other *Change) {
	for _, list := range []struct {
		to   *[]string
		from []string
	}{
		{&c.Started, other.Started},
		{&c.Reloaded, other.Reloaded},
		{&c.Restarted, other.Restarted},
		{&c.Ended, other.Ended},
		{&c.Left, other.Left},
		{&c.Stale, other.Stale},
	} {
		*list.to = append(*list.to, list.from...)
		slices.Sort(*list.to)
	}
	for node, why := range other.Why {
		if c.Why == nil {
			c.Why = map[string][]string{}
		}
		c.Why[node] = why
	}
}

// Reach makes the socket of a node available on this machine if the node runs on another one.
func (n *Network) Reach(ctx context.Context, node string) error {
	for _, c := range n.connections() {
		if lists(c.Nodes, node) {
			return c.connect(ctx)
		}
	}
	return nil
}

// Connect makes the sockets of all nodes on other machines available on this machine.
func (n *Network) Connect(ctx context.Context) error {
	return each(n.connections(), func(c *connection) error { return c.connect(ctx) })
}
