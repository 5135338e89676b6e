package api

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Times and bounds of what a page is told.
const (
	pollTime    = 500 * time.Millisecond // between looks at a node
	slowTime    = time.Second            // at what changes seldom
	askTime     = 2 * time.Second        // for a node to answer
	mostSockets = 100                    // of a node that are told
	keptTold    = 256                    // events of the nodes
	keptLooks   = 256                    // looks at a connection
)

// hub looks at the nodes while somebody reads the stream, once for all who do. What it knows is in
// parts that replace each other and in rings that forget: a reader who is slow, or a page that
// sleeps, loses what is old, holds nobody up and takes no memory.
type hub struct {
	nodes *nodes
	works *works
	ends  context.Context //nolint:containedctx // the life of the server

	mu      sync.Mutex
	seq     uint64 // of the last thing that was noted
	parts   map[string]*note
	told    []note // the last of them
	follows map[follow]*followed
	readers map[*reader]struct{}
	stop    context.CancelFunc // of the looking; nil: nobody reads
	done    sync.WaitGroup
}

// note is one thing to tell.
type note struct {
	seq   uint64
	event string
	text  []byte
}

// followed is a connection that somebody follows.
type followed struct {
	readers int
	looks   []note
	stop    context.CancelFunc
}

// reader is one who reads the stream.
type reader struct {
	seen    uint64 // of what is told once
	fresh   uint64 // of what is told as it stands
	follows []follow
	ready   chan struct{}
}

// join adds a reader, and begins to look with the first.
func (h *hub) join(after uint64, follows []follow) *reader {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &reader{seen: after, follows: follows, ready: make(chan struct{}, 1)}
	if r.seen > h.seq {
		r.seen = 0 // it heard that of another server
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

// leave takes a reader away, and with the last of them all looking ends.
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

// note makes a thing to tell and wakes who reads. The hub's lock is held.
func (h *hub) note(event string, text []byte) note {
	h.seq++
	for r := range h.readers {
		wake(r.ready)
	}
	return note{h.seq, event, text}
}

// set notes a part as it stands, if it is another than before.
func (h *hub) set(ctx context.Context, key, event string, value any) {
	text, err := document(value)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return // another looking has begun
	}
	if old := h.parts[key]; old != nil && string(old.text) == string(text) {
		return
	}
	n := h.note(event, text)
	h.parts[key] = &n
}

// drop forgets parts.
func (h *hub) drop(ctx context.Context, keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return // another looking has begun
	}
	for _, k := range keys {
		delete(h.parts, k)
	}
}

// tell notes what is told once.
func (h *hub) tell(value any) {
	text, err := document(value)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = keep(h.told, h.note("told", text), keptTold)
}

// looked notes what was seen of a connection.
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

// keep adds to the last of many.
func keep(list []note, n note, most int) []note {
	if len(list) >= most {
		list = slices.Delete(list, 0, len(list)-most+1)
	}
	return append(list, n)
}

// take is what a reader has not been told, in order.
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
