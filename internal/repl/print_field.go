package repl

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// This file formats output like iproute2. The commands with the course's names use the course's
// formats.

// lifetimes describes the lifetimes of an address, if it has any.
func lifetimes(a *control.Address) string {
	if a.Valid == 0 {
		return ""
	}
	return fmt.Sprintf(" dynamic, valid %v, preferred %v", a.Valid.Round(time.Second),
		a.Preferred.Round(time.Second))
}

// briefInterfaces formats one line for each interface, like ip -s -br link: name, state, address,
// flags, MTU, traffic and drops.
func briefInterfaces(list []control.Interface, stats int) string {
	rows := make([][]string, 0, len(list))
	for _, i := range list {
		state, flags := "UP", "<UP,LOWER_UP>"
		switch {
		case !i.Up:
			state, flags = "DOWN", "<DOWN>"
		case i.Problem != "":
			state, flags = "DOWN", "<NO-CARRIER,UP>"
		}
		rows = append(rows, []string{
			i.Name, state, strings.Trim(fmt.Sprint(i.Addrs()), "[]"), flags,
			"mtu " + strconv.Itoa(i.MTU),
			"rx " + briefCounters(&i.In), "tx " + briefCounters(&i.Out),
		})
	}
	lines := strings.SplitAfter(columnsOf(rows), "\n")
	var b, notes strings.Builder
	for n, i := range list {
		b.WriteString(lines[n])
		if i.Problem != "" {
			notes.WriteString(i.Name + ": " + printable(i.Problem) + "\n")
		}
		if stats > 0 {
			b.WriteString("    link " + i.UDP + " " + i.Offload + "\n")
			for _, a := range i.Addresses {
				b.WriteString("    " + a.Prefix.String() + " " + a.State + lifetimes(&a) + "\n")
			}
			b.WriteString(printCounters("RX", i.In, stats) + printCounters("TX", i.Out, stats))
		}
		if stats > 1 {
			b.WriteString(printDevice(&i))
		}
	}
	return b.String() + notes.String()
}

func briefCounters(c *control.Counters) string {
	text := fmt.Sprintf("%d/%s", c.Packets, shortBytes(c.Bytes))
	var dropped uint64
	for _, d := range c.Drops {
		dropped += d.Packets
	}
	if dropped > 0 {
		text += fmt.Sprintf(" drop %d", dropped)
	}
	if c.Errors > 0 {
		text += fmt.Sprintf(" err %d", c.Errors)
	}
	return text
}

func shortBytes(n uint64) string {
	if n < 1000 {
		return strconv.FormatUint(n, 10) + "B"
	}
	v, units := float64(n), "kMGTPE"
	for v >= 999.5 && units != "" {
		if v /= 1000; v < 999.5 || len(units) == 1 {
			break
		}
		units = units[1:]
	}
	digits := 0
	switch {
	case v < 9.995:
		digits = 2
	case v < 99.95:
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + units[:1] + "B"
}

// fieldRoutes formats one line for each route, like ip route. src is the interface's address.
func fieldRoutes(list []control.Route, faces []control.Interface) string {
	var b strings.Builder
	for _, r := range list {
		to := r.Prefix.String()
		switch {
		case r.Prefix.Bits() == 0:
			to = "default"
		case r.Prefix.IsSingleIP():
			to = r.Prefix.Addr().String()
		}
		words := []string{to}
		if r.Kind != "" {
			words = []string{string(r.Kind), to}
		}
		if r.NextHop.IsValid() {
			words = append(words, "via", r.NextHop.String())
		}
		if r.Iface != "" {
			words = append(words, "dev", r.Iface)
		}
		switch r.Origin {
		case control.OriginLocal:
			words = append(words, "proto", "kernel", "scope", "link")
			if a := addressOf(faces, r.Iface, r.Prefix); a.IsValid() {
				words = append(words, "src", a.String())
			}
		case control.OriginRIP:
			words = append(words, "proto", "rip")
		case control.OriginStatic:
			words = append(words, "proto", "static")
		}
		if r.Cost > 0 {
			words = append(words, "metric", strconv.Itoa(r.Cost))
		}
		b.WriteString(strings.Join(words, " ") + "\n")
	}
	return b.String()
}

// addressOf returns the interface's address in a network, or the zero Addr if it has none there.
func addressOf(faces []control.Interface, name string, network netip.Prefix) netip.Addr {
	for _, f := range faces {
		for _, a := range f.Addrs() {
			if f.Name == name && a.Masked() == network {
				return a.Addr()
			}
		}
	}
	return netip.Addr{}
}

// socketStates maps states to their names in ss where those differ from RFC 9293.
var socketStates = map[string]string{
	"ESTABLISHED": "ESTAB", "SYN_RECEIVED": "SYN-RECV", "UDP": "UNCONN",
}

func ssState(name string) string {
	if short, ok := socketStates[name]; ok {
		return short
	}
	return strings.ReplaceAll(name, "_", "-")
}

// fieldSockets formats one line for each socket, like ss -n, and the internal state of connections.
// It shows the socket's number in place of the process.
func fieldSockets(list []control.Socket, o *socketFlags) string {
	head := !o.noHeader
	both := slices.ContainsFunc(list, isUDP) &&
		slices.ContainsFunc(list, func(k control.Socket) bool { return !isUDP(k) })
	row := func(net string, cells ...string) []string {
		if both {
			return append([]string{net}, cells...)
		}
		return cells
	}
	var rows [][]string
	if head {
		rows = append(rows, row("Netid", "State", "Recv-Q", "Send-Q", "Local Address:Port",
			"Peer Address:Port", "Process"))
	}
	for _, k := range list {
		net := "tcp"
		if isUDP(k) {
			net = "udp"
		}
		state := ssState(k.State)
		if isUDP(k) && k.Remote.Port() != 0 {
			state = "ESTAB"
		}
		rows = append(rows, row(net, state, strconv.Itoa(k.RecvQ), strconv.Itoa(k.SendQ),
			ssAddress(k.Local), ssAddress(k.Remote), ssProcess(&k, o.timers)))
	}
	lines := strings.SplitAfter(columnsOf(rows), "\n")
	var b strings.Builder
	if head {
		b.WriteString(lines[0])
		lines = lines[1:]
	}
	for i, k := range list {
		b.WriteString(lines[i])
		if k.Info != nil {
			b.WriteString("\t " + printInfo(k.Info) + "\n")
		}
	}
	return b.String()
}

func isUDP(k control.Socket) bool { return k.State == "UDP" }

// ssProcess formats a socket's number and its running timer.
func ssProcess(k *control.Socket, timers bool) string {
	var words fields
	if k.SID >= 0 {
		words.add("sid:%d", k.SID)
	}
	if k.Program {
		words.add("program")
	}
	if t := k.Timer; timers && t != nil {
		words.add("timer:(%s,%s,%d)", t.Name, ssTime(t.In), t.Retries)
	}
	return strings.Join(words, " ")
}

func ssTime(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return fmt.Sprintf("%dmin%dsec", d/time.Minute, d%time.Minute/time.Second)
	case d >= time.Second:
		return fmt.Sprintf("%.1fsec", d.Seconds())
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}

func ssAddress(a netip.AddrPort) string {
	if a.Port() == 0 {
		return strings.TrimSuffix(a.String(), "0") + "*"
	}
	return a.String()
}
