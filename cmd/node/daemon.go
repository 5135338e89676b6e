package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/repl"
)

type daemon struct {
	op    control.Operator
	log   *slog.Logger
	grace time.Duration
}

// runDaemon logs the node's events until ctx ends, and returns the cause. SIGHUP reloads the file.
func (o *runOptions) runDaemon(ctx context.Context, op control.Operator, log *slog.Logger) error {
	d := &daemon{op: op, log: log, grace: o.grace}
	defer op.Watch(d.tell)()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	d.log.Info("up", "pid", os.Getpid(), "version", thisVersion().String())
	notify(serviceReady)
	beat, stop := watchdog()
	defer stop()
	for {
		select {
		case <-hangups:
			d.reload(ctx)
		case <-beat:
			if _, err := control.Ask(ctx, op, control.About{}); err == nil {
				notify(serviceAlive) // the node's loop has answered
			}
		case <-ctx.Done():
			notify(serviceStopping)
			cause := context.Cause(ctx)
			d.log.Info("stopping", "reason", cause.Error())
			d.drain()
			return printedError{cause}
		}
	}
}

func (d *daemon) tell(e control.Event) {
	switch e := e.(type) {
	case control.TransferEnded:
		if e.Problem != "" {
			d.log.Warn("transfer", "path", e.Transfer.Path, "problem", e.Problem)
			return
		}
		d.log.Info("transfer", "path", e.Transfer.Path, "bytes", e.Transfer.Bytes,
			"sha256", e.Transfer.SHA256)
		return
	case control.Segment, control.RIPNews:
		if text, _ := repl.Describe(e); text != "" {
			d.log.Debug(e.Event(), "text", text)
		}
		return
	case control.SocketClosed:
		if e.Problem != "" {
			d.log.Warn("connection failed", "local", e.Socket.Local.String(), "remote",
				e.Socket.Remote.String(), "problem", e.Problem)
			return
		}
	}
	if text, _ := repl.Describe(e); text != "" {
		d.log.Info(e.Event(), "text", text)
	}
}

func (d *daemon) reload(ctx context.Context) {
	notify(reloading())
	defer notify(serviceReady)
	done, err := control.Ask(ctx, d.op, control.Reload{})
	if err == nil {
		d.log.Info("reloaded", "changes", strings.Join(done.Changes, "; "))
		for _, text := range done.Ended {
			d.log.Warn("connection closed: local address removed", "connection", text)
		}
		return
	}
	mistakes, ok := errors.AsType[lnx.Errors](err)
	if !ok {
		d.log.Error("reload failed", "problem", err.Error())
		return
	}
	for _, m := range mistakes {
		d.log.Error("reload failed", mistakeAttrs(m)...)
	}
}

// drainPoll is the interval at which a stopping node checks its open connections.
const drainPoll = 20 * time.Millisecond

// drain closes all listeners, waits for open connections to close, and logs those that stay open.
func (d *daemon) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), d.grace+time.Second)
	defer cancel()
	var open []control.Socket
	over := time.Now().Add(d.grace)
	for first := true; ; first = false {
		list, err := control.Ask(ctx, d.op, control.Sockets{Info: true})
		if err != nil {
			return // the node has stopped
		}
		if first {
			d.closeListeners(ctx, list)
		}
		open = open[:0]
		for i := range list {
			if s := &list[i]; connected(s) {
				open = append(open, *s)
			}
		}
		if len(open) == 0 || !time.Now().Before(over) {
			break
		}
		time.Sleep(drainPoll)
	}
	for i := range open {
		s := &open[i]
		unread := s.RecvQ
		d.log.Warn("connection aborted", "socket", s.SID, "local", s.Local.String(), "remote",
			s.Remote.String(), "state", s.State, "unsent", s.SendQ, "unread", unread)
	}
}

func (d *daemon) closeListeners(ctx context.Context, sockets []control.Socket) {
	for i := range sockets {
		if sockets[i].State == "LISTEN" {
			_ = control.Order(ctx, d.op, control.Close{SID: sockets[i].SID}) // forwards: see below
		}
	}
	forwards, err := control.Ask(ctx, d.op, control.Doors{})
	if err != nil {
		return
	}
	for i := range forwards {
		_ = control.Order(ctx, d.op, control.CloseDoor{ID: forwards[i].ID}) // may already be closed
	}
}

func connected(s *control.Socket) bool {
	switch s.State {
	case "LISTEN", "UDP", "TIME_WAIT", "TIME-WAIT", "CLOSED":
		return false
	}
	return s.SID >= 0 && !s.Program // half-open connections have no SID
}
