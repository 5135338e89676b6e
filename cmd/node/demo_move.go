package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lab/figure"
)

const (
	// routeTime is how long the nodes may take to learn the routes.
	routeTime = 15 * time.Second
	routePoll = 20 * time.Millisecond
)

// demoMoved is the result of the transfer.
type demoMoved struct {
	sent, received control.Transfer
	router         []control.Interface // B's counters afterward; nil: no router
	routesAfter    time.Duration
	polled         []figure.Sample // time and RTT from the polls of the sender
}

// awaitRoutes waits until each end has a route to the other.
func (d *demo) awaitRoutes(ctx context.Context, n *demoNet) error {
	ctx, cancel := context.WithTimeoutCause(ctx, routeTime,
		fmt.Errorf("no route within %v", routeTime))
	defer cancel()
	began := time.Now()
	addrs := d.addrs()
	for addr, from := range map[string]*child{addrs[0]: n.c, addrs[len(addrs)-1]: n.a} {
		to := netip.MustParseAddr(addr)
		if err := await(ctx, from, "routes --json", addr, func(r *control.Route) bool {
			return r.Prefix.Contains(to)
		}); err != nil {
			return err
		}
	}
	n.routed = time.Since(began)
	d.say("nodes %s run; their routes converged after %.2f s", n.names(), n.routed.Seconds())
	return nil
}

// await repeats a question to a node until has is true for an element of the answer.
func await[T any](ctx context.Context, c *child, question, what string, has func(*T) bool) error {
	poll := time.NewTicker(routePoll)
	defer poll.Stop()
	for {
		var list []T
		if err := c.ask(ctx, question, &list); err != nil {
			return err
		}
		for i := range list {
			if has(&list[i]) {
				return nil
			}
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("node %s: %s: %w", c.name, what, context.Cause(ctx))
		}
	}
}

// move sets the loss and transfers the file from C to A.
func (d *demo) move(ctx context.Context, n *demoNet) (moved demoMoved, err error) {
	moved.routesAfter = n.routed
	if n.b != nil {
		var set []control.LinkLoss
		if err := n.b.ask(ctx, fmt.Sprintf("lossyforward %v --json", d.loss), &set); err != nil {
			return moved, err
		}
		d.say("B: lossyforward %v (of forwarded packets, in each direction)", d.loss)
	}
	if err := n.a.tell(fmt.Sprintf("recvfile %s %d --json", demoReceived, demoPort)); err != nil {
		return moved, err
	}
	// The answer comes after the transfer has started.
	port := fmt.Sprint("port ", demoPort)
	if err := await(ctx, n.a, "sockets --json", port, func(s *control.Socket) bool {
		return s.Local.Port() == demoPort
	}); err != nil {
		return moved, err
	}
	if err := n.c.tell("set tcp.congestion " + d.cc); err != nil {
		return moved, err
	}
	to := d.addrs()[0]
	d.say("C: sendfile to %s port %d, congestion control %s", to, demoPort, d.cc)
	send := fmt.Sprintf("sendfile %s %s %d --json", demoSent, to, demoPort)
	if err := n.c.tell(send); err != nil {
		return moved, err
	}
	if err := n.a.tell("wait"); err != nil {
		return moved, err // the shell reports errors of background commands to `wait`
	}
	w := watch{demo: d, net: n, moved: &moved, bar: d.newBar(), began: time.Now()}
	err = w.follow(ctx)
	w.bar.end()
	if err == nil && n.b != nil {
		err = n.b.ask(ctx, "interfaces --json", &moved.router)
	}
	return moved, err
}

func (n *demoNet) names() string {
	var names []string
	for _, c := range n.each() {
		names = append(names, fmt.Sprintf("%s (pid %d)", c.name, c.process.Process.Pid))
	}
	return strings.Join(names, " - ")
}
