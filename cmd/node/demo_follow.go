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
	// progressPoll is how often the sender is asked how far it is.
	progressPoll = 100 * time.Millisecond
	// stalledAfter is after how long without progress the bar says so.
	stalledAfter = time.Second
	// stallTime is after how long without progress the demonstration gives up. TCP's own limits
	// end a dead connection before.
	stallTime = 3 * time.Minute
	// inquestTime is how long the other end may take to say what it knows of a failure.
	inquestTime = 2 * time.Second
)

var errStalled = errors.New("no progress")

// watch follows one transfer.
type watch struct {
	demo    *demo
	net     *demoNet
	moved   *demoMoved
	bar     *bar
	began   time.Time
	heard   time.Duration // when there was progress, since began
	acked   uint64
	limited string // why the sender sends no more, when it last said so
}

// follow waits until both ends have ended the transfer, or something else has.
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
				poll = nil // C is done or has failed; if so it says why to who waits
				if err := c.tell("wait"); err != nil {
					return err
				}
			}
		}
	}
	w.bar.set(w.demo.bytes)
	return nil
}

// ask asks the sender how far it is. It reports false when the connection is gone.
func (w *watch) ask(ctx context.Context) (more bool, err error) {
	var sockets []control.Socket
	err = w.net.c.ask(ctx, "sockets --info --json", &sockets)
	select {
	case <-w.net.c.ended:
		return true, nil // follow finds out why
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

// note takes down what the sender said; it is an error when nothing has moved for too long.
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

// inquest finds out why the transfer failed, from the node that ended first and from the other end.
// Either may know only that the other one has reset the connection.
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

// bar is the progress on a terminal; nil: there is none, or it is not wanted.
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
		// It would draw nothing, as nothing fits; as any writer the terminal gets a bar.
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

// end leaves the bar as it is.
func (b *bar) end() {
	if b == nil {
		return
	}
	if !b.line.Completed() {
		b.line.Abort(false)
	}
	b.area.Wait()
}

// hasNoSize reports whether a terminal does not know its width, as some that programs open do not.
func hasNoSize(f *os.File) bool {
	width, _, err := term.GetSize(int(f.Fd()))
	return err != nil || width <= 0
}
