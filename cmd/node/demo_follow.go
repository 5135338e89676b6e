package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lab/figure"
	"github.com/tidepool-net/tidepool/internal/repl"
)

const (
	// progressPoll is the time between two polls of the sender.
	progressPoll = 100 * time.Millisecond
	// stalledAfter is the time without progress after which the progress bar says "stalled".
	stalledAfter = time.Second
	// stallTime is the time without progress after which the demo gives up. TCP's own limits abort
	// a dead connection earlier.
	stallTime = 3 * time.Minute
	// resetWait is how long the demo waits for the other end to report its error.
	resetWait = 2 * time.Second
)

var errStalled = errors.New("no progress")

// demoMoved is the result of the transfer.
type demoMoved struct {
	sent, received control.Transfer
	router         []control.Interface // B's counters after the transfer; nil: no router
	routesAfter    time.Duration
	polled         []figure.Sample // times and RTTs from polling the sender
}

// move sets the loss and transfers the file from C to A.
func (d *demo) move(ctx context.Context, n *demoNet) (moved demoMoved, err error) {
	moved.routesAfter = n.routed
	if n.b != nil {
		if _, err := ask(ctx, n.b, control.SetLoss{Percent: d.loss}); err != nil {
			return moved, err
		}
		d.say("B: lossyforward %v (of forwarded packets, in each direction)", d.loss)
	}
	if _, err := ask(ctx, n.c, control.Set{Key: "tcp.congestion", Value: d.cc}); err != nil {
		return moved, err
	}
	w := watch{demo: d, net: n, moved: &moved, cells: d.barCells()}
	err = w.transfer(ctx)
	if err == nil && n.b != nil {
		moved.router, err = ask(ctx, n.b, control.Interfaces{})
	}
	return moved, err
}

type watch struct {
	demo         *demo
	net          *demoNet
	moved        *demoMoved
	cells        int // width of the progress bar; 0: no bar
	began        time.Time
	lastProgress time.Duration // time of the last progress, relative to began
	acked        uint64
}

// ending is the result of the transfer at one end.
type ending struct {
	control.Transfer
	err error
}

// begin executes a transfer at a node in a new goroutine.
func begin(ctx context.Context, c *child, req control.Request[control.Transfer]) <-chan ending {
	done := make(chan ending, 1)
	go func() {
		t, err := ask(ctx, c, req)
		done <- ending{t, err}
	}()
	return done
}

// transfer executes the transfer, and polls the sender until both ends have finished.
func (w *watch) transfer(ctx context.Context) error {
	d, n := w.demo, w.net
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := make(chan struct{})
	listening := sync.OnceFunc(func() { close(ready) })
	received := begin(ctx, n.a, control.RecvFile{
		Path: d.path(demoReceived), Port: demoPort,
		Progress: func(control.Progress) { listening() },
	})
	select {
	case e := <-received:
		return e.err
	case <-ready:
	}
	to := d.addrs()[0]
	d.say("C: sendfile to %s port %d, congestion control %s", to, demoPort, d.cc)
	w.began = time.Now()
	defer w.endBar()
	sent := begin(ctx, n.c, control.SendFile{
		Path: d.path(demoSent), Addr: netip.MustParseAddr(to), Port: demoPort,
	})
	ticker := time.NewTicker(progressPoll)
	defer ticker.Stop()
	for left := 2; left > 0; {
		var err error
		select {
		case e := <-sent:
			left--
			w.moved.sent, err = e.Transfer, causeOf(e.err, received)
		case e := <-received:
			left--
			w.moved.received, err = e.Transfer, causeOf(e.err, sent)
		case <-n.routerEnded():
			err = n.b.exitError()
		case <-ticker.C:
			err = w.poll(ctx)
		}
		if err != nil {
			return err
		}
	}
	w.draw(d.bytes, false)
	return nil
}

// poll records the sender's state. It returns an error after stallTime without progress.
func (w *watch) poll(ctx context.Context) error {
	sockets, err := ask(ctx, w.net.c, control.Sockets{Info: true})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(sockets, func(s control.Socket) bool {
		return s.Remote.Port() == demoPort && s.Info != nil
	})
	if at < 0 {
		return nil // C has completed its transfer
	}
	return w.note(sockets[at].Info)
}

func (w *watch) note(info *control.Info) error {
	at := time.Since(w.began)
	w.moved.polled = append(w.moved.polled, figure.Sample{Seconds: at.Seconds(), RTT: info.RTT})
	if info.BytesAcked > w.acked {
		w.acked, w.lastProgress = info.BytesAcked, at
	}
	w.draw(min(int64(w.acked), w.demo.bytes), at-w.lastProgress >= stalledAfter)
	if at-w.lastProgress > stallTime {
		return fmt.Errorf("%w for %v after %s bytes; the sender is limited by %q",
			errStalled, stallTime, grouped(int64(w.acked)), info.Limited)
	}
	return nil
}

// causeOf returns the reason for the failure of one end. If that end knows only that the peer reset
// the connection, causeOf waits up to resetWait for the error of the other end.
func causeOf(err error, other <-chan ending) error {
	if !errors.Is(err, control.ErrReset) {
		return err
	}
	select {
	case e := <-other:
		return cmp.Or(e.err, err)
	case <-time.After(resetWait):
		return err
	}
}

// barCells returns the width of the progress bar, or 0 if there is no bar.
func (d *demo) barCells() int {
	const most, numbers = 40, 30 // columns of the bar, and of the numbers after it
	width, shown := terminalSize(d.status)
	if !shown || d.quiet || d.bytes == 0 {
		return 0
	}
	return max(1, min(most, width-numbers))
}

// draw replaces the last progress bar with a new one. A failed write does not stop the transfer.
func (w *watch) draw(done int64, stalled bool) {
	if w.cells > 0 {
		p := control.Progress{Bytes: done, Total: w.demo.bytes, Elapsed: time.Since(w.began)}
		_, _ = fmt.Fprintf(w.demo.status, "\r%s\x1b[K", repl.Bar(p, w.cells, stalled))
	}
}

func (w *watch) endBar() {
	if w.cells > 0 {
		_, _ = fmt.Fprintln(w.demo.status)
	}
}
