package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lab/figure"
)

const (
	// progressPoll is the time between two polls of the sender.
	progressPoll = 100 * time.Millisecond
	// stalledAfter is the time without progress after which the bar says "stalled".
	stalledAfter = time.Second
	// stallTime is the time without progress after which the demo gives up. TCP's own limits end a
	// dead connection earlier.
	stallTime = 3 * time.Minute
	// inquestTime is how long the other end may take to report a failure.
	inquestTime = 2 * time.Second
)

var errStalled = errors.New("no progress")

type watch struct {
	demo    *demo
	net     *demoNet
	moved   *demoMoved
	bar     *bar
	began   time.Time
	heard   time.Duration // time of the last progress, since began
	acked   uint64
	limited string // what limits the sender, at the last poll
}

// follow waits until both ends have finished the transfer, or a process has ended.
func (w *watch) follow(ctx context.Context) error {
	ticker := time.NewTicker(progressPoll)
	defer ticker.Stop()
	poll := ticker.C
	a, c := w.net.a, w.net.c
	for sent, received := false, false; !sent || !received; {
		select {
		case w.moved.sent = <-c.transfers:
			sent = true
		case w.moved.received = <-a.transfers:
			received = true
		case <-a.ended:
			return inquest(a, c)
		case <-c.ended:
			return inquest(c, a)
		case <-w.net.routerEnded():
			return w.net.b.death()
		case <-ctx.Done():
			return ctx.Err()
		case <-poll:
			more, err := w.ask(ctx)
			if err != nil {
				return err
			}
			if !more {
				poll = nil // C has finished or failed; `wait` returns the error
				if err := c.tell("wait"); err != nil {
					return err
				}
			}
		}
	}
	w.bar.set(w.demo.bytes)
	return nil
}

// ask polls the sender. It reports false when the connection is gone.
func (w *watch) ask(ctx context.Context) (more bool, err error) {
	var sockets []control.Socket
	err = w.net.c.ask(ctx, "sockets --info --json", &sockets)
	select {
	case <-w.net.c.ended:
		return true, nil // follow finds the reason
	default:
	}
	if err != nil {
		return false, err
	}
	for _, s := range sockets {
		if s.Remote.Port() == demoPort && s.Info != nil {
			return true, w.note(s.Info)
		}
	}
	return false, nil
}

// note records the sender's state. It returns an error after stallTime without progress.
func (w *watch) note(info *control.Info) error {
	at := time.Since(w.began)
	w.moved.polled = append(w.moved.polled, figure.Sample{Seconds: at.Seconds(), RTT: info.RTT})
	w.limited = info.Limited
	if info.BytesAcked > w.acked {
		w.acked, w.heard = info.BytesAcked, at
		w.bar.set(min(int64(w.acked), w.demo.bytes))
	}
	if w.bar != nil {
		w.bar.stalled.Store(at-w.heard >= stalledAfter)
	}
	if at-w.heard > stallTime {
		return fmt.Errorf("%w for %v after %s bytes; the sender is limited by %q",
			errStalled, stallTime, grouped(int64(w.acked)), w.limited)
	}
	return nil
}

// inquest finds out why the transfer failed, from the node that ended first and from the other.
// Either may know only that the other has reset the connection.
func inquest(first, other *child) error {
	err := first.death()
	if first.crashed() {
		return err
	}
	if other.tell("wait") == nil {
		other.hangUp()
	}
	timer := time.NewTimer(inquestTime)
	defer timer.Stop()
	select {
	case <-other.ended:
		if other.err != nil && strings.Contains(err.Error(), control.ErrReset.Error()) {
			return other.death()
		}
	case <-timer.C:
	}
	return err
}

// bar is the progress bar; nil: no terminal, or not wanted.
type bar struct {
	area    *mpb.Progress
	line    *mpb.Bar
	stalled atomic.Bool
}

func (d *demo) newBar() *bar {
	if _, shown := terminalSize(d.status); !shown || d.quiet || d.bytes == 0 {
		return nil
	}
	options := []mpb.ContainerOption{mpb.WithRefreshRate(progressPoll), mpb.WithWidth(40)}
	if f, ok := d.status.(*os.File); ok && hasNoSize(f) {
		// The bar would draw nothing on a terminal without a size. Any other writer gets a default
		// width.
		out := struct{ io.Writer }{d.status}
		options = append(options, mpb.WithOutput(out), mpb.WithAutoRefresh(), mpb.WithWidth(76))
	} else {
		options = append(options, mpb.WithOutput(d.status))
	}
	area := mpb.New(options...)
	b := &bar{area: area}
	b.line = area.AddBar(d.bytes,
		mpb.PrependDecorators(decor.Percentage(decor.WC{W: 5})),
		mpb.AppendDecorators(
			decor.AverageSpeed(decor.SizeB1000(0), " % .1f"),
			decor.Name("  "),
			decor.AverageETA(decor.ET_STYLE_MMSS), decor.Name(" left"),
			decor.Any(func(decor.Statistics) string {
				if b.stalled.Load() {
					return ", stalled"
				}
				return ""
			})))
	return b
}

func (b *bar) set(done int64) {
	if b != nil {
		b.line.SetCurrent(done)
	}
}

// end leaves the bar on the screen.
func (b *bar) end() {
	if b == nil {
		return
	}
	if !b.line.Completed() {
		b.line.Abort(false)
	}
	b.area.Wait()
}

// hasNoSize reports whether a terminal does not know its size, like some that programs open.
func hasNoSize(f *os.File) bool {
	width, _, err := term.GetSize(int(f.Fd()))
	return err != nil || width <= 0
}
