package playground

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/files"
)

// Input is something that a user does to a world. At is the time.
type Input struct {
	At time.Duration `json:"at"`
	// Node is the node of Line, Stop and File.
	Node string `json:"node,omitempty"`
	// Line is a line of the node's shell.
	Line string `json:"line,omitempty"`
	// Stop is Ctrl-C in the node's shell.
	Stop bool `json:"stop,omitempty"`
	// File is the name of a file to store at the node. Data is the file's contents.
	File string `json:"file,omitempty"`
	Data []byte `json:"data,omitempty"`
	// Request is a request to the API.
	Request *Request `json:"request,omitempty"`
	// Abort is the number of a request whose client is gone. 0: no request.
	Abort int `json:"abort,omitempty"`
}

// Request is a request to the API that changes the network. Requests that only read are not inputs.
type Request struct {
	Number int    `json:"number"` // counted from 1; used by Abort
	Method string `json:"method"`
	Path   string `json:"path"`
	Accept string `json:"accept,omitempty"`
	Body   string `json:"body,omitempty"`
}

// The limits of inputs.
const (
	maxTyped = 1000     // lines that a shell has not read yet
	MaxFile  = 64 << 20 // in bytes
)

// Errors of inputs.
var (
	errInput = errors.New("cannot use this input")
	errTyped = errors.New("the shell has not read the lines before this one")
)

// Do carries out a new input and sets its At. The time is a little later than now, and never the
// instant at which a timer with a round duration expires. The input can then be passed to Replay.
func (w *World) Do(in *Input, answer Response) error {
	w.inputs++
	time.Sleep(time.Duration(1 + mix(w.inputs, uint64(w.Now()))>>54))
	in.At = w.Now()
	err := w.do(in, answer)
	w.Settle()
	return err
}

// Replay carries out an input at its time.
func (w *World) Replay(in *Input) error {
	if in.At < w.Now() {
		return fmt.Errorf("%w: its time, %v, is before %v", errInput, in.At, w.Now())
	}
	w.inputs++
	w.Advance(in.At)
	err := w.do(in, discard{})
	w.Settle()
	return err
}

func (w *World) do(in *Input, answer Response) error {
	if in.Request != nil {
		w.Get(in.Request, answer)
		return nil
	}
	if in.Abort != 0 {
		w.Leave(in.Abort)
		return nil
	}
	h, err := w.host(in.Node)
	switch {
	case err != nil:
		return err
	case in.File != "":
		return h.store(in.File, in.Data)
	case in.Stop:
		h.interrupt()
		return nil
	}
	select {
	case h.lines <- strings.TrimRight(in.Line, "\r\n"):
		return nil
	default:
		return fmt.Errorf("node %s: %w", h.name, errTyped)
	}
}

// Response receives the answer to a request.
type Response interface {
	http.ResponseWriter
	// End is called after the answer.
	End()
}

// Get starts to answer a request that only reads.
func (w *World) Get(r *Request, answer Response) {
	ctx, cancel := context.WithCancel(w.ends)
	w.mu.Lock()
	w.requests[r.Number] = cancel
	w.mu.Unlock()
	w.busy.Go(func() {
		defer answer.End()
		defer w.Leave(r.Number)
		q, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodGet),
			"http://playground"+r.Path, strings.NewReader(r.Body))
		if err != nil {
			http.Error(answer, err.Error(), http.StatusBadRequest)
			return
		}
		if r.Accept != "" {
			q.Header.Set("Accept", r.Accept)
		}
		w.server.ServeHTTP(answer, q)
	})
}

// Leave ends a request whose client is gone.
func (w *World) Leave(number int) {
	w.mu.Lock()
	cancel := w.requests[number]
	delete(w.requests, number)
	w.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// store writes a file of the node.
func (h *host) store(name string, data []byte) error {
	if len(data) > MaxFile {
		return fmt.Errorf("%s: %d bytes: must be at most %d", name, len(data), MaxFile)
	}
	if err := files.CheckName(name); err != nil {
		return err
	}
	f, err := h.files.Edit(name, 0o644)
	if err != nil {
		return err
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.Write(data)
	}
	return errors.Join(err, f.Close())
}

// File returns a file of a node.
func (w *World) File(node, name string) ([]byte, error) {
	h, err := w.host(node)
	if err != nil {
		return nil, err
	}
	f, _, err := h.files.Read(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return files.All(name, f, MaxFile)
}

// FileInfo is a file of a node.
type FileInfo struct {
	Node string `json:"node"`
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// List returns the nodes' files, without those in folders.
func (w *World) List() (list []FileInfo, err error) {
	for _, h := range w.hosts {
		found, err := h.list()
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	slices.SortFunc(list, func(a, b FileInfo) int {
		return strings.Compare(a.Node+"\x00"+a.Name, b.Node+"\x00"+b.Name)
	})
	return list, nil
}

func (h *host) list() (list []FileInfo, err error) {
	dir, err := h.files.Open(".")
	if err != nil {
		return nil, err
	}
	found, err := dir.(interface {
		ReadDir(n int) ([]os.DirEntry, error)
	}).ReadDir(-1)
	_ = dir.Close()
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			list = append(list, FileInfo{h.name, e.Name(), info.Size()})
		}
	}
	return list, nil
}

// discard is the client of replayed requests.
type discard struct{}

func (discard) Header() http.Header { return http.Header{} }

func (discard) Write(p []byte) (int, error) { return io.Discard.Write(p) }

func (discard) WriteHeader(int) {}

// FlushError implements what http.ResponseController calls.
func (discard) FlushError() error { return nil }

func (discard) End() {}
