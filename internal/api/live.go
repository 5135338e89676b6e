package api

import (
	"context"
	"slices"
	"sync"
	"time"
)

// These are the intervals and limits of the page's stream.
const (
	pollTime     = 500 * time.Millisecond // time between two polls of a node
	slowTime     = time.Second            // time between two polls of parts that rarely change
	askTime      = 2 * time.Second        // limit of the wait for a node's answer
	mostSessions = 50                     // NAT sessions shown per NAT
	mostSockets  = 100                    // sockets shown per node
	keptEvents   = 256                    // number of node events kept
	keptFollowed = 256                    // number of samples and segments kept for a connection
)

// feed polls the nodes for all readers of the page's stream together, while there are readers. It
// keeps the latest state of each part, and the last events in rings. A slow reader misses old
// events, but does not delay other readers or use more memory.
type feed struct {
	nodes *nodes
	jobs  *jobs
	ends  context.Context //nolint:containedctx // ends with the server

	mu      sync.Mutex
	seq     uint64 // number of the last note
	parts   map[string]*note
	events  []note // the last events
	follows map[follow]*followed
	readers map[*reader]struct{}
	stop    context.CancelFunc // stops polling; nil: there are no readers
	done    sync.WaitGroup
}

// note is one event of the stream.
type note struct {
	seq   uint64
	event string
	text  []byte
}

// followed is a connection that readers follow.
type followed struct {
	readers int
	events  []note
	stop    context.CancelFunc
}

// reader is a client of the stream.
type reader struct {
	seen    uint64 // number of the last event that the reader has
	fresh   uint64 // number of the last part that the reader has
	follows []follow
	ready   chan struct{}
}

// join adds a reader. The first reader starts the polling of the nodes.
func (h *feed) join(after uint64, follows []follow) *reader {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &reader{seen: after, follows: follows, ready: make(chan struct{}, 1)}
	if r.seen > h.seq {
		r.seen = 0 // the number was assigned by another server
	}
	if h.readers == nil {
		h.readers = map[*reader]struct{}{}
		h.follows = map[follow]*followed{}
	}
	h.readers[r] = struct{}{}
	ctx := h.ends
	if h.stop == nil {
		var looking context.Context
		looking, h.stop = context.WithCancel(ctx)
		h.parts = map[string]*note{}
		h.poll(looking)
	}
	for _, f := range follows {
		k := h.follows[f]
		if k == nil {
			k = &followed{}
			var following context.Context
			following, k.stop = context.WithCancel(ctx)
			h.follows[f] = k
			h.done.Go(func() { h.follow(following, f) })
		}
		k.readers++
	}
	wake(r.ready)
	return r
}

// leave removes a reader. The last reader stops the polling.
func (h *feed) leave(r *reader) {
	h.mu.Lock()
	delete(h.readers, r)
	for _, f := range r.follows {
		if k := h.follows[f]; k != nil {
			if k.readers--; k.readers == 0 {
				k.stop()
				delete(h.follows, f)
			}
		}
	}
	if len(h.readers) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
	h.mu.Unlock()
}

// note creates an event and wakes up the readers. The caller holds the lock.
func (h *feed) note(event string, text []byte) note {
	h.seq++
	for r := range h.readers {
		wake(r.ready)
	}
	return note{h.seq, event, text}
}

// set stores the state of a part if it has changed.
func (h *feed) set(ctx context.Context, key, event string, value any) {
	text, err := document(value)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return // this poll was stopped
	}
	if old := h.parts[key]; old != nil && string(old.text) == string(text) {
		return
	}
	n := h.note(event, text)
	h.parts[key] = &n
}

func (h *feed) drop(ctx context.Context, keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return // this poll was stopped
	}
	for _, k := range keys {
		delete(h.parts, k)
	}
}

// addEvent adds an event that a node has sent.
func (h *feed) addEvent(value any) {
	text, err := document(value)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = keep(h.events, h.note("told", text), keptEvents)
}

func (h *feed) addFollowed(f follow, event string, value any) {
	text, err := document(value)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.follows[f]; k != nil {
		k.events = keep(k.events, h.note(event, text), keptFollowed)
	}
}

// keep appends to a list. Beyond the limit it drops the oldest entry.
func keep(list []note, n note, most int) []note {
	if len(list) >= most {
		list = slices.Delete(list, 0, len(list)-most+1)
	}
	return append(list, n)
}

// take returns the events that a reader does not have yet, in order.
func (h *feed) take(r *reader) []note {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []note
	for _, n := range h.parts {
		if n.seq > r.fresh {
			list = append(list, *n)
		}
	}
	once := [][]note{h.events}
	for _, f := range r.follows {
		if k := h.follows[f]; k != nil {
			once = append(once, k.events)
		}
	}
	for _, notes := range once {
		for _, n := range notes {
			if n.seq > r.seen {
				list = append(list, n)
			}
		}
	}
	r.seen, r.fresh = h.seq, h.seq
	slices.SortFunc(list, func(a, b note) int {
		if a.seq < b.seq {
			return -1
		}
		return 1
	})
	return list
}

func wake(ready chan struct{}) {
	select {
	case ready <- struct{}{}:
	default:
	}
}
