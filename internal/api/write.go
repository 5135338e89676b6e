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

// These are the media types of the API.
const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
	typeLines   = "application/x-ndjson"
	typeEvents  = "text/event-stream"
)

// These are the times that a client may stall while the server writes a whole answer, or a piece of
// a stream. The client of a stream may stall for long: a pager, Wireshark, or a browser on a
// sleeping machine. Events that it misses are counted or replaced, not queued.
const (
	hangs  = 10 * time.Second
	pauses = 10 * time.Minute
)

// document encodes a value as JSON with a newline. An empty list is [], not null.
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

// answer writes a whole answer. It returns an error if the answer cannot be encoded.
func answer(w http.ResponseWriter, status int, as string, a any) error {
	body, err := document(a)
	if err != nil { // the value contains NaN, for example
		return &failure{errInside, "writing the answer: " + err.Error()}
	}
	w.Header().Set("Content-Type", as)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_ = write(w, body, hangs)
	return nil
}

// writeProblem writes a problem document.
func writeProblem(w http.ResponseWriter, err error) {
	p := problemOf(err)
	_ = answer(w, p.Status, typeProblem, p) // strings always encode
}

// write writes to a client that may stall. A failure ends the connection and the context of the
// request.
func write(w http.ResponseWriter, text []byte, stall time.Duration) error {
	c := http.NewResponseController(w)
	// Writers in tests have no deadlines.
	_ = c.SetWriteDeadline(time.Now().Add(stall))
	_, err := w.Write(text)
	return err
}

// stream is a streamed answer: lines of JSON, or events. Several goroutines may write to it.
type stream struct {
	w      http.ResponseWriter
	as     string // typeLines, typeEvents or typeCapture
	cancel func() // called when the client has disconnected
	hung   func() // called when the client has stalled for too long

	mu   sync.Mutex
	over bool
	id   int // number of the last event
}

// begin sends the header of a running command's stream. The stream calls cancel when the client has
// disconnected.
func (js *jobs) begin(w http.ResponseWriter, as string, job *job, cancel func()) *stream {
	w.Header().Set("Content-Type", as)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	hung := func() {
		if js.warn != nil {
			js.warn(fmt.Sprintf("stream %d (%s) closed: its reader has stalled for %v", job.ID,
				job.Command, pauses))
		}
	}
	out := &stream{w: w, as: as, cancel: cancel, hung: hung}
	out.put(nil)
	return out
}

// put writes a piece of text and flushes it.
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

// end makes later writes by other goroutines fail silently.
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
		return // cannot happen: the types always encode
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id++
	s.locked(fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n", s.id, event, text))
}

// writeResult writes the result of a command.
func (s *stream) writeResult(a any, err error) {
	if err != nil {
		s.tell(eventError, problemOf(err))
	} else {
		s.tell(eventResult, a)
	}
}

// keep writes keep-alives until ctx ends.
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
			if s.mu.TryLock() { // if locked, another goroutine is writing
				s.locked(sign)
				s.mu.Unlock()
			}
		}
	}
}
