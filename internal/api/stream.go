package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
)

// typeCapture is what a capture comes as: a pcapng file that goes on.
const typeCapture = "application/octet-stream"

// streaming answers a GET of a request that looks on, whose fields are the query: as server-sent
// events or, if asked, as lines of JSON. What is wrong with it is a problem, before anything else.
func (s *Server) streaming(w http.ResponseWriter, r *http.Request) {
	k, ok := kinds[r.PathValue("stream")]
	if !ok || !k.Stream {
		refuse(w, fmt.Errorf("%s: %w; /v1/openapi.json lists what there is", r.URL.Path,
			errNoSuchPath))
		return
	}
	l := looking{kind: k, as: typeEvents}
	if wantsLines(r) {
		l.as = typeLines
	}
	l.attach = func(request reflect.Value) { bind(request, l.tell) }
	s.look(w, r, &l)
}

// A capture that is answered as it is has in its header the number that stops it, and in its
// trailer what became of it, as JSON.
const (
	headerRunning = "Tidepool-Running"
	headerResult  = "Tidepool-Result"
)

// recording answers with a capture as it is.
func (s *Server) recording(w http.ResponseWriter, r *http.Request) {
	l := looking{kind: kindsOf[reflect.TypeFor[control.Record]()], as: typeCapture}
	l.attach = func(request reflect.Value) {
		request.FieldByName("Piece").Set(reflect.ValueOf(func(b []byte) { l.out.put(b) }))
	}
	s.look(w, r, &l)
}

// looking is a request that looks on.
type looking struct {
	kind   *control.Kind
	as     string              // the type of the answer
	attach func(reflect.Value) // gives it its functions
	out    *stream             // nil until it has begun
}

// tell writes an event.
func (l *looking) tell(event string, data any) {
	if l.as == typeLines {
		l.out.line(event, data)
	} else {
		l.out.event(event, data)
	}
}

// look carries out a request that looks on, until its reader is gone or it is stopped.
func (s *Server) look(w http.ResponseWriter, r *http.Request, l *looking) {
	m, ok := s.member(w, r)
	if !ok {
		return
	}
	request := reflect.New(l.kind.Request).Elem()
	if err := fromQuery(request, r.URL.RawQuery); err != nil {
		refuse(w, err)
		return
	}
	// RFC 9110 §9.2.1: a GET is safe. A browser makes one of any link that somebody clicks.
	for _, name := range l.kind.Files {
		if !request.FieldByName(name).IsZero() {
			refuse(w, fmt.Errorf("query: %w: a GET writes no file; POST /v1/nodes/%s/commands/%s "+
				"does", control.ErrUsage, r.PathValue("node"), l.kind.Name))
			return
		}
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", l.as)
		return
	}
	ctx, cancel := m.within(files.In(r.Context(), s.files))
	defer cancel()
	job, err := s.works.add(r.PathValue("node"), l.kind.Name, cancel)
	if err != nil {
		refuse(w, err)
		return
	}
	defer s.works.remove(job)
	l.attach(request)
	request.FieldByName("Begun").Set(reflect.ValueOf(func() {
		if l.as == typeCapture {
			w.Header().Set(headerRunning, strconv.Itoa(job.ID))
			w.Header().Set("Trailer", headerResult)
		}
		l.out = s.begin(w, l.as, job, cancel)
		if l.as != typeCapture {
			l.tell(eventBegun, job.Running)
			go l.out.keep(ctx, l.as)
		}
	}))
	a, err := carryOut(ctx, m.op, request)
	err = gone(ctx, err)
	switch {
	case l.out == nil && err == nil: // a node that does not say that it has begun
		err = errInside
		fallthrough
	case l.out == nil:
		refuse(w, err)
		return
	case l.as == typeCapture && err != nil:
		// What has come is a whole file. That it is not all shows in how the answer ends.
		panic(http.ErrAbortHandler)
	case l.as == typeCapture:
		if text, bad := json.Marshal(a); bad == nil { // plain values
			w.Header().Set(headerResult, string(text))
		}
	case err != nil:
		l.tell(eventError, problemOf(err))
	default:
		l.tell(eventResult, a)
	}
	l.out.end()
}

// keep says now and then that a stream is there, until ctx ends.
func (s *stream) keep(ctx context.Context, as string) {
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if !s.mu.TryLock() {
				continue // it is being written to
			}
			if as == typeLines {
				s.locked([]byte("\n"))
			} else {
				s.locked([]byte(":\n\n"))
			}
			s.mu.Unlock()
		}
	}
}
