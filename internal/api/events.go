package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// quiet is how long a stream of events may be silent before it says that it is there: proxies and
// readers take longer silences for the end.
const quiet = 15 * time.Second

// events tells what a node tells, as server-sent events (HTML Living Standard §9.2) or, if asked,
// as lines of JSON. Nothing that happened before is told. When the node is gone, an error comes
// last.
func (ws *works) events(w http.ResponseWriter, r *http.Request) error {
	m, err := ws.nodes.of(r)
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", typeEvents)
		return nil
	}
	op := m.op
	var lost <-chan struct{} // nil: a node of this process, which ends with it
	if c, ok := op.(*Client); ok {
		c = c.fresh()
		op, lost = c, c.Lost()
	}
	ctx, cancel := m.within(r.Context())
	defer cancel()
	job, err := ws.add(r.PathValue("node"), "events", cancel)
	if err != nil {
		return err
	}
	defer ws.remove(job)
	// What is told before the header is out would be written in front of it: the watcher waits.
	started := make(chan struct{})
	var out *stream
	stop := op.Watch(func(e control.Event) {
		<-started
		out.tell(e.Event(), e)
	})
	defer stop()
	select {
	case <-lost:
		return fmt.Errorf("%s: %w", m.name, ErrGone)
	default:
	}
	as := typeEvents
	if wantsLines(r) {
		as = typeLines
	}
	out = ws.begin(w, as, job, cancel)
	close(started)
	defer out.end()
	go out.keep(ctx)
	select {
	case <-ctx.Done():
		err = gone(ctx, nil)
	case <-lost:
		err = fmt.Errorf("%s: %w", m.name, ErrGone)
	}
	if err != nil {
		out.tell(eventError, problemOf(err))
	}
	return nil
}
