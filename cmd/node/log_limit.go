package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// maxLog is the maximum size of a log file in bytes. At this size the log drops its older half.
const maxLog = 16 << 20

// boundedLog is a log file of limited size. The file must be open for reading and appending. The
// log shortens the file in place, because a node without root's privileges may not rename it, and
// because the runtime writes a panic to the same open file.
type boundedLog struct {
	*os.File

	mu   sync.Mutex
	most int64
}

// boundLog limits a log file. Pipes and the journal have their own limits.
func boundLog(to io.Writer, most int64) io.Writer {
	f, ok := to.(*os.File)
	if !ok {
		return to
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return to
	}
	if _, err := f.ReadAt(make([]byte, 1), 0); err != nil && !errors.Is(err, io.EOF) {
		return to // a shell's redirection, which is write-only
	}
	return &boundedLog{File: f, most: most}
}

func (b *boundedLog) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.File.Write(p)
	if info, e := b.Stat(); err == nil && e == nil && info.Size() > b.most {
		err = b.shorten(info.Size())
	}
	return n, err
}

// shorten keeps the last whole lines, up to half of the file's limit.
func (b *boundedLog) shorten(size int64) error {
	tail := make([]byte, b.most/2)
	n, err := b.ReadAt(tail, size-int64(len(tail)))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, tail, _ = bytes.Cut(tail[:n], []byte{'\n'})
	if err := b.Truncate(0); err != nil {
		return err
	}
	_, err = b.File.Write(tail)
	return err
}

// logRate is how many records with one cause the log accepts per second. Neighbors can cause
// records, too, and a neighbor that floods the node must not fill the disk.
const logRate = 20

// limited is a handler that drops records beyond logRate, counts them, and logs their number at the
// end of the second.
type limited struct {
	slog.Handler

	*recordCounts
}

// recordCounts counts the records of the current second for each cause.
type recordCounts struct {
	mu     sync.Mutex
	seen   map[string]int
	ending bool // end is already scheduled
}

func (l *limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limited{l.Handler.WithAttrs(attrs), l.recordCounts}
}

func (l *limited) WithGroup(name string) slog.Handler {
	return &limited{l.Handler.WithGroup(name), l.recordCounts}
}

// Handle implements slog.Handler. A record's cause is its message, which is the name of an event.
func (l *limited) Handle(ctx context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ending {
		l.ending = true
		time.AfterFunc(time.Second, l.end)
	}
	if l.seen[r.Message]++; l.seen[r.Message] > logRate {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// end ends the current second. It logs the number of dropped records.
func (l *limited) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, cause := range slices.Sorted(maps.Keys(l.seen)) {
		if left := l.seen[cause] - logRate; left > 0 {
			r := slog.NewRecord(time.Now(), slog.LevelWarn, "records dropped", 0)
			r.Add("cause", cause, "count", left)
			_ = l.Handler.Handle(context.Background(), r) // the log itself has failed
		}
	}
	clear(l.seen)
	l.ending = false
}
