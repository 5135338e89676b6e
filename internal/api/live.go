package api

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Times and limits of the page's stream.
const (
	pollTime     = 500 * time.Millisecond // between two polls of a node
	slowTime     = time.Second            // between two polls of what changes seldom
	askTime      = 2 * time.Second        // for a node to answer
	mostSessions = 50                     // per NAT
	mostSockets  = 100                    // per node
	keptTold     = 256                    // events of the nodes
	keptLooks    = 256                    // samples and segments of a connection
)

// hub polls the nodes once for all readers of the stream, while there are any. It keeps the latest
// state of each part, and the last events in rings. A slow reader loses old events, but does not
// delay others or use memory.
type hub struct {
	nodes *nodes
	works *works
	ends  context.Context //nolint:containedctx // the life of the server

	mu      sync.Mutex
	seq     uint64 // of the last note
	parts   map[string]*note
	told    []note // the last events
	follows map[follow]*followed
	readers map[*reader]struct{}
	stop    context.CancelFunc // stops polling; nil: no readers
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
	looks   []note
	stop    context.CancelFunc
}

// reader is a client of the stream.
type reader struct {
	seen    uint64 // last event that it has
	fresh   uint64 // last part that it has
	follows []follow
	ready   chan struct{}
}

// join adds a reader. The first one starts the polling of the node.
func (h *hub) join(after uint64, follows []follow) *reader {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &reader{seen: after, follows: follows, ready: make(chan struct{}, 1)}
	if r.seen > h.seq {
		r.seen = 0 // the number is another server's
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
		h.look(looking)
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

// leave removes a reader, and stops polling with the last.
func (h *hub) leave(r *reader) {
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

// note creates an event and wakes the readers. The caller holds the lock.
func (h *hub) note(event string, text []byte) note {
	h.seq++
	for r := range h.readers {
		wake(r.ready)
	}
	return note{h.seq, event, text}
}

// set updates the state of a part if it has changed.
func (h *hub) set(ctx context.Context, key, event string, value any) {
	text, err := document(value)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return // another poll has started
	}
	if old := h.parts[key]; old != nil && string(old.text) == string(text) {
		return
	}
	n := h.note(event, text)
	h.parts[key] = &n
}

func (h *hub) drop(ctx context.Context, keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return // another poll has started
	}
	for _, k := range keys {
		delete(h.parts, k)
	}
}

// tell adds an event of a node.
func (h *hub) tell(value any) {
	text, err := document(value)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = keep(h.told, h.note("told", text), keptTold)
}

func (h *hub) looked(f follow, event string, value any) {
	text, err := document(value)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.follows[f]; k != nil {
		k.looks = keep(k.looks, h.note(event, text), keptLooks)
	}
}

// keep appends to a list and drops the oldest beyond its limit.
func keep(list []note, n note, most int) []note {
	if len(list) >= most {
		list = slices.Delete(list, 0, len(list)-most+1)
	}
	return append(list, n)
}

// take returns the events that a reader does not have, in order.
func (h *hub) take(r *reader) []note {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []note
	for _, n := range h.parts {
		if n.seq > r.fresh {
			list = append(list, *n)
		}
	}
	once := [][]note{h.told}
	for _, f := range r.follows {
		if k := h.follows[f]; k != nil {
			once = append(once, k.looks)
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
