package main

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// logRate is how many records of one cause a log takes a second. Neighbors cause records too, and
// one that floods the node must not fill the disk.
const logRate = 20

// limited is a handler that counts the records beyond logRate, and logs how many there were when
// the second is over.
type limited struct {
	slog.Handler

	*causes
}

// causes count the records of this second.
type causes struct {
	mu     sync.Mutex
	seen   map[string]int
	ending bool // end is going to be called
}

func limitLog(h slog.Handler) slog.Handler {
	return &limited{h, &causes{seen: map[string]int{}}}
}

// WithAttrs implements slog.Handler.
func (l *limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limited{l.Handler.WithAttrs(attrs), l.causes}
}

// WithGroup implements slog.Handler.
func (l *limited) WithGroup(name string) slog.Handler {
	return &limited{l.Handler.WithGroup(name), l.causes}
}

// Handle implements slog.Handler. A record's cause is its event, or else its message.
func (l *limited) Handle(ctx context.Context, r slog.Record) error {
	cause := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "event" {
			cause = a.Value.String()
		}
		return a.Key != "event"
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ending {
		l.ending = true
		time.AfterFunc(time.Second, l.end)
	}
	if l.seen[cause]++; l.seen[cause] > logRate {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// end ends a second: it logs what was left out.
func (l *limited) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, cause := range slices.Sorted(maps.Keys(l.seen)) {
		if left := l.seen[cause] - logRate; left > 0 {
			r := slog.NewRecord(time.Now(), slog.LevelWarn, "records left out", 0)
			r.Add("cause", cause, "count", left)
			_ = l.Handler.Handle(context.Background(), r) // nobody is left to tell
		}
	}
	clear(l.seen)
	l.ending = false
}
