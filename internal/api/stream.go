package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
)

// typeCapture is the media type of a capture, which is an endless pcapng file.
const typeCapture = "application/octet-stream"

// streaming answers a GET for a stream of events as server-sent events or as lines of JSON. The
// query contains the fields of the request. An invalid request gets a problem document.
func (js *jobs) streaming(w http.ResponseWriter, r *http.Request) error {
	k, ok := kinds[r.PathValue("stream")]
	if !ok || !k.Stream {
		return fmt.Errorf("%s: %w; /v1/openapi.json lists the paths", r.URL.Path,
			errNoSuchPath)
	}
	l := streamRequest{kind: k, as: typeEvents}
	if wantsLines(r) {
		l.as = typeLines
	}
	l.attach = func(request reflect.Value) {
		bind(request, func(event string, data any) { l.out.tell(event, data) })
	}
	return js.serveStream(w, r, &l)
}

// The header of a raw capture has the number that stops the capture. The trailer has the result in
// JSON.
const (
	headerRunning = "Tidepool-Running"
	headerResult  = "Tidepool-Result"
)

// recording answers with a raw capture.
func (js *jobs) recording(w http.ResponseWriter, r *http.Request) error {
	l := streamRequest{kind: kindsOf[reflect.TypeFor[control.Record]()], as: typeCapture}
	l.attach = func(request reflect.Value) {
		request.FieldByName("Piece").Set(reflect.ValueOf(func(b []byte) { l.out.put(b) }))
	}
	return js.serveStream(w, r, &l)
}

// streamRequest describes a request for a stream.
type streamRequest struct {
	kind   *control.Kind
	as     string              // media type of the answer
	attach func(reflect.Value) // sets the request's functions
	out    *stream             // stream of the answer; nil until the command has begun
}

// serveStream executes a request for a stream until the client disconnects or stops it.
func (js *jobs) serveStream(w http.ResponseWriter, r *http.Request, l *streamRequest) error {
	m, err := js.nodes.of(r)
	if err != nil {
		return err
	}
	request := reflect.New(l.kind.Request).Elem()
	if err := fromQuery(request, r.URL.RawQuery); err != nil {
		return err
	}
	// RFC 9110 §9.2.1: a GET is safe. Browsers send a GET for any link that a user clicks.
	for _, name := range l.kind.Files {
		if !request.FieldByName(name).IsZero() {
			return fmt.Errorf("query: %w: a GET writes no file; use POST /v1/nodes/%s/commands/%s",
				control.ErrUsage, r.PathValue("node"), l.kind.Name)
		}
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", l.as)
		return nil
	}
	ctx, cancel := m.within(files.In(r.Context(), js.files))
	defer cancel()
	job, err := js.add(r.PathValue("node"), l.kind.Name, cancel)
	if err != nil {
		return err
	}
	defer js.remove(job)
	l.attach(request)
	request.FieldByName("Begun").Set(reflect.ValueOf(func() {
		if l.as == typeCapture {
			w.Header().Set(headerRunning, strconv.Itoa(job.ID))
			w.Header().Set("Trailer", headerResult)
		}
		l.out = js.begin(w, l.as, job, cancel)
		if l.as != typeCapture {
			l.out.tell(eventBegun, job.Running)
			go l.out.keep(ctx)
		}
	}))
	a, err := execute(ctx, m.op, request)
	err = gone(ctx, err)
	switch {
	case l.out == nil && err == nil: // the command ended without reporting its start
		return errInside
	case l.out == nil:
		return err
	case l.as == typeCapture && err != nil:
		// Otherwise the client would take the file for complete. An abort shows the failure.
		panic(http.ErrAbortHandler)
	case l.as == typeCapture:
		if text, bad := json.Marshal(a); bad == nil { // the type always encodes
			w.Header().Set(headerResult, string(text))
		}
	default:
		l.out.writeResult(a, err)
	}
	l.out.end()
	return nil
}
