package playground

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/repl"
)

// host is a node of a world with its files and its shell.
type host struct {
	name  string
	node  *operator.Node
	files *files.Folder
	sent  *sum
	out   printer     // output of the shell
	lines chan string // typed lines

	scripts scripts              // the node's loop owns it
	now     func() time.Duration // since the world's start

	// time of TCP's first retransmission, since the world's start; 0: there was none
	retransmitted atomic.Int64

	mu      sync.Mutex
	session *repl.Shell // nil: there is no session yet
}

// Do implements control.Operator. File names in requests refer to the node's own files.
func (h *host) Do(ctx context.Context, req any) (any, error) {
	return h.node.Do(files.In(ctx, h.files), req)
}

func (h *host) Watch(f func(control.Event)) (stop func()) { return h.node.Watch(f) }

// shell runs the node's shell until the world ends. After quit it starts a new one.
func (h *host) shell(w *World) {
	w.busy.Go(func() {
		for w.ends.Err() == nil {
			s, err := repl.New(w.ends, repl.Config{
				Operator: h, Out: h.out, Err: h.out, Color: true,
			})
			if err != nil {
				return // the node is closed
			}
			h.mu.Lock()
			h.session = s
			h.mu.Unlock()
			e := &typed{host: h, ends: w.ends}
			err = s.Interactive(files.In(w.ends, h.files), e)
			if err != nil && w.ends.Err() == nil {
				h.out(err.Error() + "\n")
			}
		}
	})
}

func (h *host) current() *repl.Shell {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session
}

// interrupt acts like Ctrl-C.
func (h *host) interrupt() {
	if s := h.current(); s != nil {
		s.Interrupt()
	}
}

// Complete lists the words that can replace the last word of a line of a node's shell.
func (w *World) Complete(node, line string) []string {
	h, err := w.host(node)
	if err != nil || h.current() == nil {
		return nil
	}
	return h.current().Complete(line)
}

type printer func(text string)

func (p printer) Write(b []byte) (int, error) {
	p(string(b))
	return len(b), nil
}

// typed is a repl.LineReader for a page. The page edits the lines itself.
type typed struct {
	host *host
	ends context.Context //nolint:containedctx // lasts as long as the world

	mu      sync.Mutex
	history []repl.TypedLine
}

func (t *typed) ReadLine(prompt string) (string, error) {
	select {
	case line := <-t.host.lines:
		_, _ = io.WriteString(t.host.out, prompt+line+"\n") // writing to memory does not fail
		t.mu.Lock()
		defer t.mu.Unlock()
		t.history = append(t.history, repl.TypedLine{Number: len(t.history) + 1, Line: line})
		return line, nil
	case <-t.ends.Done():
		return "", io.EOF
	}
}

// SetPrompt implements repl.LineReader. The page has its own prompt.
func (t *typed) SetPrompt(string) {}

func (t *typed) Stdout() io.Writer { return nil }

func (t *typed) History() []repl.TypedLine {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.history
}

func (t *typed) Close() error { return nil }
