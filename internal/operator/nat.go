package operator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/nat"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// setNATs gives the interfaces the NATs of a file.
func setNATs(c *lnx.Config, cfg *stack.Config) {
	for i := range c.NATs {
		for k := range cfg.Interfaces {
			if cfg.Interfaces[k].Name == c.NATs[i].Iface {
				cfg.Interfaces[k].NAT = &c.NATs[i].Config
			}
		}
	}
}

func natText(c *lnx.Config, name string) string {
	i := slices.IndexFunc(c.NATs, func(n lnx.NAT) bool { return n.Iface == name })
	if i < 0 {
		return "no nat"
	}
	texts := []string{strings.TrimSpace("nat " + lnx.NATWords(&c.NATs[i].Config))}
	for _, f := range c.NATs[i].Config.Forwards {
		texts = append(texts, "forward "+lnx.NATForwardWords(f))
	}
	return strings.Join(texts, ", ")
}

func handleNATs(h *Requests) {
	look(h, func(s *stack.Stack, now clock.Time, _ control.NATs) ([]control.NAT, error) {
		list := []control.NAT{}
		for _, f := range s.Interfaces().Infos() {
			if n := s.Interfaces().NAT(f.Index); n != nil {
				list = append(list, natInfo(n, now, &f))
			}
		}
		return list, nil
	})
	order(h, h.setNAT)
	look(h, func(
		s *stack.Stack, _ clock.Time, r control.ClearNAT,
	) (done control.NATCleared, err error) {
		which, err := h.faces(r.Iface)
		for _, i := range which {
			if n := s.Interfaces().NAT(i); n != nil {
				done.Sessions += n.Clear()
			} else if r.Iface != "" {
				err = noNAT(r.Iface)
			}
		}
		return done, err
	})
}

func noNAT(name string) error {
	return fmt.Errorf("%w: interface %s has no NAT; `nat on %s` adds one", control.ErrUsage,
		name, name)
}

func natInfo(n *nat.NAT, now clock.Time, f *control.Interface) control.NAT {
	cfg, info := n.Config(), n.Info()
	shown := cfg
	shown.Timeouts, shown.MaxSessions, shown.MaxPerHost = nat.Timeouts{}, 0, 0
	a := control.NAT{
		Iface: f.Name, Outside: cfg.Addr, Config: lnx.NATWords(&shown),
		Mapping: cfg.Mapping.String(), Filtering: cfg.Filtering.String(),
		Forwards: []string{}, Sessions: []control.NATSession{}, Total: info.Sessions,
		MaxSessions: cfg.MaxSessions, MaxPerHost: cfg.MaxPerHost, Mappings: info.Mappings,
		Created: info.Created, Expired: info.Expired, Evicted: info.Evicted,
		Refused: info.Refused, Filtered: info.Filtered, Out: info.Outbound, In: info.Inbound,
	}
	for _, f := range cfg.Forwards {
		a.Forwards = append(a.Forwards, lnx.NATForwardWords(f))
	}
	names := map[uint8]string{1: "icmp", 6: "tcp", 17: "udp"}
	for _, s := range n.Sessions(now, control.MaxNATSessions) {
		remote := s.Remote.String()
		if s.Protocol == 1 {
			remote = s.Remote.Addr().String()
		}
		a.Sessions = append(a.Sessions, control.NATSession{
			Protocol: names[s.Protocol], Inside: s.Inside.String(), Outside: s.Outside.String(),
			Remote: remote, State: s.State, Forward: s.Forward, Left: s.Left.Seconds(),
			Out: s.Outbound, In: s.Inbound,
		})
	}
	return a
}

func (h *Requests) setNAT(s *stack.Stack, _ clock.Time, r control.SetNAT) error {
	i, err := h.node.Iface(r.Iface)
	if err != nil {
		return err
	}
	var cfg nat.Config
	n := s.Interfaces().NAT(i)
	if n != nil {
		cfg = n.Config()
	}
	switch {
	case r.On:
		forwards := cfg.Forwards
		if cfg, err = lnx.ReadNAT(r.Args); err != nil {
			return fmt.Errorf("nat on %s: %w: %w", r.Iface, control.ErrUsage, err)
		}
		cfg.Forwards = forwards
	case n == nil:
		return noNAT(r.Iface)
	case len(r.Forward) > 0:
		f, err := lnx.ReadNATForward(r.Forward)
		if err != nil {
			return fmt.Errorf("nat forward %s: %w: %w", r.Iface, control.ErrUsage, err)
		}
		if _, own := s.Interfaces().Owns(f.To.Addr()); own {
			return fmt.Errorf("nat forward %s: %w: %v is this node itself", r.Iface,
				control.ErrUsage, f.To)
		}
		cfg.Forwards = append(slices.Clip(cfg.Forwards), f)
	case len(r.Unforward) > 0:
		left := slices.DeleteFunc(slices.Clone(cfg.Forwards), func(f nat.Forward) bool {
			return len(r.Unforward) == 2 && f.TCP == (r.Unforward[0] == "tcp") &&
				r.Unforward[1] == strconv.Itoa(int(f.Port))
		})
		if len(left) == len(cfg.Forwards) {
			return fmt.Errorf("nat off %s: %w: no port forward of %s", r.Iface, control.ErrUsage,
				strings.Join(r.Unforward, " "))
		}
		cfg.Forwards = left
	default:
		return s.SetNAT(i, nil)
	}
	if err := s.SetNAT(i, &cfg); err != nil {
		return fmt.Errorf("%w: %w", control.ErrUsage, err)
	}
	return nil
}
