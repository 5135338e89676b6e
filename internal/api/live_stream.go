package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// mostFollowed limits the connections that one stream follows.
const mostFollowed = 8

// stream sends everything that a page shows as server-sent events: the state of each node's parts,
// their changes, and the nodes' events. The query ?connection=NODE/SID, which may be repeated, adds
// samples of a connection, and segments=NODE/SID its segments. The query segments=NODE/SID,NODE/SID
// adds the segments of both ends and the segments that nodes between them dropped.
func (h *feed) stream(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", typeEvents)
		return nil
	}
	follows, err := h.nodes.followedBy(r)
	if err != nil {
		return err
	}
	job, err := h.jobs.add("", "stream", func() {})
	if err != nil {
		return err
	}
	defer h.jobs.remove(job)
	after, _ := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64) // 0: send all
	who := h.join(after, follows)
	defer h.leave(who)
	over := make(chan struct{})
	out := h.jobs.begin(w, typeEvents, job, func() { close(over) })
	defer out.end()
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-over:
			return nil
		case <-tick.C:
			out.put([]byte(":\n\n"))
		case <-who.ready:
			var b []byte
			for _, n := range h.take(who) {
				b = fmt.Appendf(b, "id: %d\nevent: %s\ndata: %s\n", n.seq, n.event, n.text)
			}
			if len(b) > 0 {
				out.put(b)
			}
		}
	}
}

func (n *nodes) followedBy(r *http.Request) (list []follow, err error) {
	query := r.URL.Query()
	for _, name := range []string{"connection", "segments"} {
		for _, text := range query[name] {
			left, right, both := strings.Cut(text, ",")
			f := follow{segments: name == "segments"}
			if f.node, f.sid, err = n.place(name, left); err == nil && both && f.segments {
				f.peer, f.peerSID, err = n.place(name, right)
			}
			if err != nil {
				return nil, err
			}
			list = append(list, f)
		}
	}
	if len(list) > mostFollowed {
		return nil, fmt.Errorf("query: %w: %d connections: must be at most %d", control.ErrUsage,
			len(list), mostFollowed)
	}
	return list, nil
}

func (n *nodes) place(name, text string) (node string, sid int, err error) {
	node, number, _ := strings.Cut(text, "/")
	sid, err = strconv.Atoi(number)
	if err != nil || sid < 0 {
		return "", 0, fmt.Errorf("query: %w: %s=%s: must be NODE/SID", control.ErrUsage, name, text)
	}
	if now := n.now.Load(); now.member(node) == nil {
		return "", 0, fmt.Errorf("query: %s=%s: %w", name, text, now.noSuch(node))
	}
	return node, sid, nil
}
