//go:build linux

// Package netns makes three network namespaces in a row, client, router and server, for the
// kernel's own TCP to be measured in: MTU 1400 like the other links, with the interfaces' offloads
// or without, and with losses at the router.
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

// The names of a row's places.
const (
	Client = "c"
	Router = "r"
	Server = "s"
)

// ServerAddr is the address of the server's end.
const ServerAddr = "10.0.1.2"

// Row is three namespaces.
type Row struct {
	prefix string
	loss   float64
}

// Lacking says what is needed for namespaces and is not there; empty: nothing.
func Lacking() string {
	if os.Getuid() != 0 {
		return "root"
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return "ip (iproute2)"
	}
	return ""
}

// prefixes are those of the rows of this program, with the number of the process that made them.
var prefixes = regexp.MustCompile(`(?m)^(tidepool-bench-(\d+)-\S+)-[crs]\b`)

// Sweep deletes what processes have left that were killed.
func Sweep(ctx context.Context) {
	list, err := exec.CommandContext(ctx, "ip", "netns", "list").Output()
	if err != nil {
		return // there is nothing to sweep
	}
	for _, m := range prefixes.FindAllStringSubmatch(string(list), -1) {
		pid, err := strconv.Atoi(m[2])
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			(&Row{prefix: m[1]}).Close(ctx)
		}
	}
}

// New makes a row. Without offloads the kernel handles each packet by itself, as it has to on a
// link that has none.
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

// Into is the command that has another run in a place.
func (r *Row) Into(place string) []string {
	return []string{"ip", "netns", "exec", r.name(place)}
}

// in runs a command in a place.
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
			if err := r.raise(ctx, e[0], e[1], e[2], offloads); err != nil {
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

// raise gives an interface its address and takes its offloads away.
func (r *Row) raise(ctx context.Context, place, dev, addr string, offloads bool) error {
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

// tune has the router forward, and gives the ends' connections the room that others have.
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

// Lose has the router drop that share of what it forwards, of each direction.
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

// Close deletes the namespaces and what is in them.
func (r *Row) Close(ctx context.Context) {
	for _, p := range []string{Client, Router, Server} {
		// Some may not be there.
		_ = run(context.WithoutCancel(ctx), "ip", "netns", "del", r.name(p))
	}
}
