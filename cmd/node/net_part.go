package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/netctl"
)

// netPartCommand returns the command that `net` executes on other machines over ssh. The command
// reads a netctl.PartRequest from standard input and prints a netctl.PartAnswer.
func netPartCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "part",
		Short:  "execute a request of `node net` on another machine",
		Hidden: true,
		Args:   usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			in := json.NewDecoder(c.InOrStdin())
			var r netctl.PartRequest
			if err := in.Decode(&r); err != nil {
				return &usageError{fmt.Errorf("standard input: %w", err)}
			}
			ctx, stop := endBySignal(c.Context())
			defer stop()
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			go func() { // standard input ends when the ssh connection ends
				_, _ = io.Copy(io.Discard, c.InOrStdin())
				cancel(errors.New("lost the connection to this host"))
			}()
			a, err := part(ctx, r)
			if err != nil {
				a.Error = err.Error()
				if bad, ok := errors.AsType[lnx.Errors](err); ok {
					a.Problems, _ = json.Marshal(bad) // the type always encodes
				}
			}
			return json.NewEncoder(c.OutOrStdout()).Encode(a)
		},
	}
}

func part(ctx context.Context, r netctl.PartRequest) (a netctl.PartAnswer, err error) {
	s, err := netctl.MakeState(r.State)
	if err != nil {
		return a, err
	}
	var p netctl.Plan
	if r.Do == netctl.PartUp || r.Do == netctl.PartApply {
		p.OneProcess = r.Flags.OneProcess
		if p.Program, err = os.Executable(); err != nil {
			return a, err
		}
		o := netOptions{files: r.Flags.Files, user: r.Flags.User}
		if p.Flags, err = o.nodeFlags(); err != nil {
			return a, err
		}
		var f networkFiles
		for name, text := range r.Files {
			c, err := lnx.Parse(name+".lnx", text)
			if err != nil {
				return a, err
			}
			f.nodes = append(f.nodes, networkNode{config: c, text: text})
		}
		p.Check = f.checker(ctx, s, r.Network)
	}
	return s.Part(ctx, r, p)
}

// resolve finds the addresses of the plan's other machines and generates the files with them.
func (f *networkFiles) resolve(ctx context.Context) error {
	if f.plan == nil || len(f.plan.Machines) == 0 {
		return nil
	}
	for i := range f.plan.Machines {
		m := &f.plan.Machines[i]
		var err error
		if m.Address.IsValid() {
			m.Here, err = netctl.AddressToward(ctx, m.Name, m.Address)
		} else {
			m.Address, m.Here, err = netctl.SSHAddress(ctx, m.Name, m.SSH)
		}
		if err != nil {
			return err
		}
	}
	return f.generate()
}

// addMachines adds the other machines, and the links to them, to a plan for netctl.
func (f *networkFiles) addMachines(p *netctl.Plan) {
	if f.plan == nil {
		return
	}
	p.Place = f.placePart
	for i := range f.plan.Machines {
		own := &f.plan.Machines[i]
		m := netctl.Machine{Name: own.Name, SSH: own.SSH}
		for _, n := range f.nodes {
			if n.host == own.Name {
				m.Nodes = append(m.Nodes, netctl.Member{
					Name: n.config.Name, Text: n.text, Host: n.host,
				})
			}
		}
		p.Machines = append(p.Machines, m)
	}
	for _, i := range f.plan.Crossing() {
		l := f.plan.Links[i]
		a, b := f.nodes[l.A], f.nodes[l.B]
		_, addr := f.plan.Addrs(i)
		p.Crossings = append(p.Crossings, netctl.Crossing{
			From: a.config.Name, To: b.config.Name, Addr: addr,
			About: fmt.Sprintf("link %s %s: no packet of %s arrives at %s and returns; let UDP "+
				"pass between %s and %s, or change `address` in the line of the host",
				a.config.Name, b.config.Name, a.place(), b.place(), a.udp(b), b.udp(a)),
		})
	}
}

func (n *networkNode) place() string {
	if n.host == "" {
		return n.config.Name + " (this host)"
	}
	return fmt.Sprintf("%s (host %s)", n.config.Name, n.host)
}

// udp returns the UDP address of the interface that leads to other.
func (n *networkNode) udp(other networkNode) string {
	for _, f := range n.config.Interfaces {
		for _, nb := range other.config.Neighbors {
			if nb.UDP == f.UDP {
				return f.UDP.String()
			}
		}
	}
	return "?"
}

// placePart converts errors in the files of another machine to errors in the plan.
func (f *networkFiles) placePart(machine string, problems json.RawMessage) error {
	var bad lnx.Errors
	if err := json.Unmarshal(problems, &bad); err != nil || len(bad) == 0 {
		return fmt.Errorf("host %s: unexpected problems %q: %w", machine, problems, err)
	}
	return machineError{lnx.Errors{f.plan.OnMachine(machine, f.planFile, bad)}}
}
