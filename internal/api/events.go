package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// quiet is the longest pause in an event stream. Proxies and clients close streams that pause for
// longer.
const quiet = 15 * time.Second

// events streams a node's events as server-sent events (HTML Living Standard §9.2) or as lines of
// JSON, starting with the next event. If the node stops, the last event is an error.
func (js *jobs) events(w http.ResponseWriter, r *http.Request) error {
	m, err := js.nodes.of(r)
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", typeEvents)
		return nil
	}
	op := m.op
	var lost <-chan struct{} // nil if the node runs in this process
	if c, ok := op.(*Client); ok {
		c = c.fresh()
		op, lost = c, c.Lost()
	}
	ctx, cancel := m.within(r.Context())
	defer cancel()
	job, err := js.add(r.PathValue("node"), "events", cancel)
	if err != nil {
		return err
	}
	defer js.remove(job)
	// The watcher waits until the header has been written.
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
	out = js.begin(w, as, job, cancel)
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
