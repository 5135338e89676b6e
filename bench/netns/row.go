//go:build linux

// Package netns connects three new network namespaces in a row, client, router and server, to
// measure the kernel's own TCP. The MTU is 1400, as on the other links. Offloads of the interfaces
// can be on or off, and the router can drop packets.
package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// Names of a row's namespaces.
const (
	Client = "c"
	Router = "r"
	Server = "s"
)

// ServerAddr is the server's address.
const ServerAddr = "10.0.1.2"

// Row is three connected namespaces.
type Row struct {
	prefix string
	loss   float64
}

// Lacking returns what is missing for creating namespaces; empty: nothing.
func Lacking() string {
	if os.Getuid() != 0 {
		return "root"
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return "ip (iproute2)"
	}
	return ""
}

// prefixes matches the namespaces of this program, whose names contain the id of the process that
// created them.
var prefixes = regexp.MustCompile(`(?m)^(tidepool-bench-(\d+)-\S+)-[crs]\b`)

// Sweep deletes the namespaces that killed processes have left behind.
func Sweep(ctx context.Context) {
	list, err := exec.CommandContext(ctx, "ip", "netns", "list").Output()
	if err != nil {
		return // then there are no namespaces
	}
	for _, m := range prefixes.FindAllStringSubmatch(string(list), -1) {
		pid, err := strconv.Atoi(m[2])
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			(&Row{prefix: m[1]}).Close(ctx)
		}
	}
}

// New creates a row. Without offloads, the kernel processes each packet individually.
func New(ctx context.Context, offloads bool) (*Row, error) {
	kind := "off"
	if offloads {
		kind = "on"
	}
	r := &Row{prefix: fmt.Sprintf("tidepool-bench-%d-%s", os.Getpid(), kind)}
	if err := r.build(ctx, offloads); err != nil {
		r.Close(ctx)
		return nil, err
	}
	return r, nil
}

func (r *Row) name(place string) string { return r.prefix + "-" + place }

// Into returns the command prefix that runs a command in a namespace.
func (r *Row) Into(place string) []string {
	return []string{"ip", "netns", "exec", r.name(place)}
}

func (r *Row) in(ctx context.Context, place string, args ...string) error {
	return run(ctx, append(r.Into(place), args...)...)
}

func run(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s",
			strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (r *Row) build(ctx context.Context, offloads bool) error {
	for _, p := range []string{Client, Router, Server} {
		if err := run(ctx, "ip", "netns", "add", r.name(p)); err != nil {
			return err
		}
		if err := run(ctx, "ip", "-n", r.name(p), "link", "set", "lo", "up"); err != nil {
			return err
		}
	}
	for _, l := range []struct{ place, dev, addr, other, otherDev, otherAddr string }{
		{Client, "cr", "10.0.0.1/24", Router, "rc", "10.0.0.2/24"},
		{Router, "rs", "10.0.1.1/24", Server, "sr", ServerAddr + "/24"},
	} {
		err := run(ctx, "ip", "link", "add", l.dev, "netns", r.name(l.place), "mtu", "1400",
			"type", "veth", "peer", "name", l.otherDev, "netns", r.name(l.other), "mtu", "1400")
		if err != nil {
			return err
		}
		for _, e := range [][3]string{
			{l.place, l.dev, l.addr}, {l.other, l.otherDev, l.otherAddr},
		} {
			if err := r.configure(ctx, e[0], e[1], e[2], offloads); err != nil {
				return err
			}
		}
	}
	for place, via := range map[string]string{Client: "10.0.0.2", Server: "10.0.1.1"} {
		err := run(ctx, "ip", "-n", r.name(place), "route", "add", "default", "via", via)
		if err != nil {
			return err
		}
	}
	return r.tune(ctx)
}

// configure sets an interface's address, brings it up and, unless offloads is set, disables
// offloads.
func (r *Row) configure(ctx context.Context, place, dev, addr string, offloads bool) error {
	ns := r.name(place)
	if err := run(ctx, "ip", "-n", ns, "addr", "add", addr, "dev", dev); err != nil {
		return err
	}
	if err := run(ctx, "ip", "-n", ns, "link", "set", dev, "up"); err != nil {
		return err
	}
	if offloads {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return r.in(ctx, place, self, "bare", dev)
}

// tune enables forwarding on the router, and gives the ends' sockets buffers like those of the
// other stacks.
func (r *Row) tune(ctx context.Context) error {
	const room = "4096 1048576 33554432"
	for _, s := range [][3]string{
		{Router, "net/ipv4/ip_forward", "1"},
		{Client, "net/ipv4/tcp_rmem", room},
		{Client, "net/ipv4/tcp_wmem", room},
		{Server, "net/ipv4/tcp_rmem", room},
		{Server, "net/ipv4/tcp_wmem", room},
	} {
		if err := r.in(ctx, s[0], "sh", "-c", "echo "+s[2]+" > /proc/sys/"+s[1]); err != nil {
			return err
		}
	}
	return nil
}

// Lose makes the router drop the given share of the packets it forwards, in each direction.
func (r *Row) Lose(ctx context.Context, share float64) error {
	if share == r.loss {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := r.in(ctx, Router, self, "lose", strconv.FormatFloat(share, 'g', -1, 64)); err != nil {
		return err
	}
	r.loss = share
	return nil
}

// Close deletes the namespaces with everything in them.
func (r *Row) Close(ctx context.Context) {
	for _, p := range []string{Client, Router, Server} {
		// A namespace may be missing.
		_ = run(context.WithoutCancel(ctx), "ip", "netns", "del", r.name(p))
	}
}
