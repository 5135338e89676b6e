package tidepool

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
)

// errConfig is what is wrong with a Config.
var errConfig = errors.New("tidepool: bad configuration")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errConfig, fmt.Sprintf(format, args...))
}

// checkAddr reports what is wrong with an interface's address: whatever an .lnx file
// may not have either.
func checkAddr(p netip.Prefix) error {
	if !p.IsValid() || !p.Addr().Is4() {
		return fmt.Errorf("the Addr %v is not IPv4", p)
	}
	if why := lnx.AddrFault(p); why != "" {
		return fmt.Errorf("the Addr %v is %s", p, why)
	}
	return nil
}

// checkNeighbor reports what is wrong with the address of a neighbor at an
// interface.
func checkNeighbor(face *lnx.Interface, a netip.Addr) error {
	if why := lnx.NeighborFault(a, face.Addr); why != "" {
		return fmt.Errorf("neighbor %v is %s", a, why)
	}
	return nil
}

// checkKernel reports what is wrong with the address of a TUN device's other end.
func (f *Interface) checkKernel() error {
	if f.Kernel.IsValid() && !f.Kernel.Is4() {
		return fmt.Errorf("the Kernel's address %v is not IPv4", f.Kernel)
	}
	for _, p := range f.KernelRoutes {
		if !f.Kernel.IsValid() || !p.Addr().Is4() || p != p.Masked() {
			return fmt.Errorf("the kernel's route %v: want an IPv4 prefix without host bits, "+
				"and a Kernel address", p)
		}
	}
	if !f.Kernel.IsValid() {
		return nil
	}
	if why := lnx.NeighborFault(f.Kernel, f.Addr); why != "" {
		return fmt.Errorf("the Kernel's address %v is %s", f.Kernel, why)
	}
	return nil
}

// check reports what is wrong with a route of a node with those interfaces.
// maxMetric is the largest metric of a route.
const maxMetric = 1<<31 - 1

func (r *Route) check(faces []lnx.Interface) error {
	switch {
	case r.Metric < 0 || r.Metric > maxMetric:
		return wrong("route %v: metric %d: want 0 to %d", r.Prefix, r.Metric, maxMetric)
	case r.Kind == "blackhole" || r.Kind == "unreachable" || r.Kind == "prohibit":
		if !r.Prefix.IsValid() || !r.Prefix.Addr().Is4() || r.Via.IsValid() {
			return wrong("route %v %s via %v: want an IPv4 prefix alone", r.Prefix, r.Kind, r.Via)
		}
		return nil
	case r.Kind != "":
		return wrong("route %v: Kind %q: want blackhole, unreachable, prohibit or none",
			r.Prefix, r.Kind)
	case !r.Prefix.IsValid() || !r.Prefix.Addr().Is4() || !r.Via.Is4():
		return wrong("route %v via %v: want an IPv4 prefix and address", r.Prefix, r.Via)
	}
	onLink := false
	for i := range faces {
		p := faces[i].Addr
		if p.Addr() == r.Via {
			return wrong("route %v: next hop %v is the node itself", r.Prefix, r.Via)
		}
		onLink = onLink || p.Masked().Contains(r.Via)
	}
	if !onLink {
		return wrong("route %v: next hop %v is on no interface's network", r.Prefix, r.Via)
	}
	return nil
}

func checkHosts(hosts map[string]netip.Addr) error {
	for name, a := range hosts {
		if !a.Unmap().Is4() {
			return wrong("Hosts[%q]: %v is not an IPv4 address", name, a)
		}
	}
	return nil
}

// check reports what is wrong with the fields of TCP; zero fields are right.
func (t *TCP) check() error {
	if t.Profile != "" && t.Profile != "004" {
		return wrong("TCP.Profile %q: want 004 or none", t.Profile)
	}
	if _, ok := node.ParseECN(t.ECN); !ok {
		return wrong("TCP.ECN %q: want on, off or passive", t.ECN)
	}
	if _, ok := node.ParseSynCookies(t.SynCookies); !ok {
		return wrong("TCP.SynCookies %q: want auto, always or off", t.SynCookies)
	}
	for _, f := range []struct {
		name               string
		value, least, most int
	}{
		{"InitialWindow", t.InitialWindow, 1, node.MaxInitialWindow},
		{"SynRetries", t.SynRetries, 1, node.MaxRetries},
		{"DataRetries", t.DataRetries, 1, node.MaxRetries},
		{"ReadBuffer", t.ReadBuffer, node.MinBuffer, node.MaxBuffer},
		{"WriteBuffer", t.WriteBuffer, node.MinBuffer, node.MaxBuffer},
	} {
		if f.value != 0 && (f.value < f.least || f.value > f.most) {
			return wrong("TCP.%s %d: want %d to %d", f.name, f.value, f.least, f.most)
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"RTOInitial", t.RTOInitial},
		{"RTOMin", t.RTOMin},
		{"RTOMax", t.RTOMax},
		{"DelayedAck", t.DelayedAck},
	} {
		if f.value < 0 {
			return wrong("TCP.%s %v is negative", f.name, f.value)
		}
	}
	if t.RTOMax != 0 && t.RTOMax < t.RTOMin {
		return wrong("TCP.RTOMax %v is less than RTOMin %v", t.RTOMax, t.RTOMin)
	}
	if t.DelayedAck >= node.MaxDelayedAck {
		return wrong("TCP.DelayedAck %v: want less than %v (RFC 9293 §3.8.6.3)",
			t.DelayedAck, node.MaxDelayedAck)
	}
	return nil
}

// given lists the names of what is set, for a message.
func given(names []string, set ...bool) string {
	var list []string
	for i, name := range names {
		if set[i] {
			list = append(list, name)
		}
	}
	return strings.Join(list, " and ")
}
