package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/repl"
)

// newLog is the log of a node without a shell: one line an event. The journal stamps lines itself.
func newLog(to io.Writer, name string) *slog.Logger {
	options := slog.HandlerOptions{}
	if os.Getenv("JOURNAL_STREAM") != "" {
		options.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
	}
	return slog.New(slog.NewTextHandler(to, &options)).With("node", name)
}

// runDaemon logs what the node tells until ctx ends, whose cause it returns.
func (o *runOptions) runDaemon(ctx context.Context, op control.Operator, to io.Writer) error {
	log := newLog(to, o.config.LNX.Name)
	defer op.Watch(func(e control.Event) {
		if end, ok := e.(control.TransferEnded); ok {
			if end.Problem != "" {
				log.Warn("transfer", "path", end.Transfer.Path, "problem", end.Problem)
				return
			}
			log.Info("transfer", "path", end.Transfer.Path, "bytes", end.Transfer.Bytes,
				"sha256", end.Transfer.SHA256)
			return
		}
		if text, _ := repl.Describe(e); text != "" {
			log.Info(text, "event", e.Event())
		}
	})()
	log.Info("up", "pid", os.Getpid(), "version", thisVersion().String())
	notify(serviceReady)
	<-ctx.Done()
	notify(serviceStopping)
	cause := context.Cause(ctx)
	log.Info("ending", "because", cause.Error())
	return cause
}
