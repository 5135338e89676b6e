package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"sync"
	"time"
)

// The types of what the API answers.
const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
	typeLines   = "application/x-ndjson"
	typeEvents  = "text/event-stream"
)

// How long a client may take to accept what is written to it before it is given up: an answer, and
// a piece of what goes on, whose reader stops for a while as a pager does, Wireshark while somebody
// looks, and a browser on a machine that sleeps. What it is not told meanwhile is counted or
// replaced, not kept.
const (
	hangs  = 10 * time.Second
	pauses = 10 * time.Minute
)

// document is a value as JSON, with a newline behind it. A list that is empty is one, not null.
func document(a any) ([]byte, error) {
	if v := reflect.ValueOf(a); v.Kind() == reflect.Slice && v.IsNil() {
		a = []struct{}{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(a)
	return b.Bytes(), err
}

// answer writes a whole answer, or reports why it has no JSON.
func answer(w http.ResponseWriter, status int, as string, a any) error {
	body, err := document(a)
	if err != nil { // plain values: a number that is none, say
		return &failure{errInside, "writing the answer: " + err.Error()}
	}
	w.Header().Set("Content-Type", as)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_ = write(w, body, hangs)
	return nil
}

// refuse writes an error.
func refuse(w http.ResponseWriter, err error) {
	p := problemOf(err)
	_ = answer(w, p.Status, typeProblem, p) // texts have JSON
}

// write writes to a client that may hang. What fails ends the connection, and with it the
// request's context: there is nobody else to tell.
func write(w http.ResponseWriter, text []byte, patience time.Duration) error {
	c := http.NewResponseController(w)
	// A writer without deadlines is a test's, which does not hang.
	_ = c.SetWriteDeadline(time.Now().Add(patience))
	_, err := w.Write(text)
	return err
}

// stream is an answer that goes on: lines of JSON, or events. Several goroutines may write to it.
type stream struct {
	w      http.ResponseWriter
	as     string // typeLines, typeEvents or typeCapture
	cancel func() // ends what the stream tells of when nobody reads it any more
	hung   func() // tells that its reader took nothing for too long

	mu   sync.Mutex
	over bool
	id   int // of the last event
}

// begin sends the header of the stream of a command under way, which cancel ends.
func (ws *works) begin(w http.ResponseWriter, as string, job *work, cancel func()) *stream {
	w.Header().Set("Content-Type", as)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	hung := func() {
		if ws.told != nil {
			ws.told(fmt.Sprintf("stream %d (%s) closed: its reader has stalled for %v", job.ID,
				job.Command, pauses))
		}
	}
	out := &stream{w: w, as: as, cancel: cancel, hung: hung}
	out.put(nil)
	return out
}

// put writes a piece of text, at once.
func (s *stream) put(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locked(text)
}

func (s *stream) locked(text []byte) {
	if s.over {
		return
	}
	err := write(s.w, text, pauses)
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	if err != nil {
		s.over = true
		s.cancel()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.hung()
	}
}

// end keeps those who still write from a writer that is gone.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// line is one line of a stream of JSON.
type line struct {
	Event string `json:"event"`
	Data  any    `json:"data"`
}

// tell writes one line of JSON or one server-sent event.
func (s *stream) tell(event string, data any) {
	if s.as == typeLines {
		text, err := document(line{event, data})
		if err != nil {
			text, _ = document(line{eventError, problemOf(errInside)})
		}
		s.put(text)
		return
	}
	text, err := document(data)
	if err != nil {
		return // plain values: it does not happen
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id++
	s.locked(fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n", s.id, event, text))
}

// conclude tells what came of a command.
func (s *stream) conclude(a any, err error) {
	if err != nil {
		s.tell(eventError, problemOf(err))
	} else {
		s.tell(eventResult, a)
	}
}

// keep says now and then that a stream is there, until ctx ends.
func (s *stream) keep(ctx context.Context) {
	sign := []byte(":\n\n")
	if s.as == typeLines {
		sign = []byte("\n")
	}
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.mu.TryLock() { // else it is being written to
				s.locked(sign)
				s.mu.Unlock()
			}
		}
	}
}
