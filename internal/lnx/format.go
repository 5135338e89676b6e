package lnx

import (
	"bytes"
	"fmt"
	"time"
)

// Format returns the Config as text of the new grammar, whatever grammar it
// came from. Parse makes the same Config of it, but for its Grammar, its Name
// and the places in the file.
func (c *Config) Format() []byte {
	var b bytes.Buffer
	if c.SharedSocket {
		b.WriteString("socket shared\n")
	}
	for i := range c.Interfaces {
		c.Interfaces[i].format(&b)
	}
	for i := range c.Interfaces {
		c.Interfaces[i].formatLink(&b)
	}
	for i := range c.Impair {
		fmt.Fprintf(&b, "impair %s %s %s\n", c.Impair[i].Iface, c.Impair[i].Way, c.Impair[i].Text())
	}
	for _, n := range c.Neighbors {
		fmt.Fprintf(&b, "neighbor %s at %s via %s\n", n.Addr, n.UDP, n.Iface)
	}
	fmt.Fprintf(&b, "routing %s\n", c.Routing)
	for _, r := range c.Routes {
		fmt.Fprintf(&b, "route %s %s\n", r.Prefix, r.words())
	}
	c.RIP.format(&b, c.Routing)
	for i := range c.Interfaces {
		c.Interfaces[i].formatRIP(&b)
	}
	c.TCP.format(&b)
	c.ICMP.format(&b)
	c.IP.format(&b)
	for i := range c.Doors {
		b.WriteString(c.Doors[i].String() + "\n")
	}
	return b.Bytes()
}

func (i *Interface) format(b *bytes.Buffer) {
	fmt.Fprintf(b, "interface %s %s ", i.Name, i.Addr)
	switch {
	case i.Tun == nil:
		b.WriteString(i.UDP.String())
	case i.Tun.Kernel.IsValid():
		fmt.Fprintf(b, "tun:%s kernel %s", i.Tun.Device, i.Tun.Kernel)
		for n, p := range i.Tun.Routes {
			if n == 0 {
				b.WriteString(" routes")
			}
			b.WriteString(" " + p.String())
		}
	default:
		b.WriteString("tun:" + i.Tun.Device)
	}
	b.WriteByte('\n')
}

// formatLink writes what the link directive sets, if anything.
func (i *Interface) formatLink(b *bytes.Buffer) { i.formatSettings(b, "link ", linkSettings) }

// formatSettings writes what a directive of keys and values sets, if anything.
func (i *Interface) formatSettings(b *bytes.Buffer, directive string, list []linkSetting) {
	start := directive + i.Name + " "
	end := ""
	for _, s := range list {
		if value := s.write(i); value != "" {
			b.WriteString(start + s.key + " " + value)
			start, end = " ", "\n"
		}
	}
	b.WriteString(end)
}

// format leaves out what Parse would fill in.
func (t TCP) format(b *bytes.Buffer) {
	rtoMin, rtoMax := RTODefaults(t.Profile)
	if t.Profile != "" {
		fmt.Fprintf(b, "tcp profile %s\n", t.Profile)
	}
	formatRTO(b, "rto-min", t.RTOMin, rtoMin)
	formatRTO(b, "rto-max", t.RTOMax, rtoMax)
	if t.OptionsOff {
		b.WriteString("tcp options off\n")
	}
	if t.NoResets {
		b.WriteString("tcp rst off\n")
	}
}

func formatRTO(b *bytes.Buffer, name string, d, usual time.Duration) {
	if d != 0 && d != usual {
		fmt.Fprintf(b, "tcp %s %d\n", name, d.Microseconds())
	}
}
