package services

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
)

// underway lists the running transfers.
type underway struct {
	mu   sync.Mutex
	last int // number of the last transfer
	list map[int]*moving
}

// moving is a running transfer: its state, and how to stop it.
type moving struct {
	control.Underway
	stop   context.CancelFunc
	folder *files.Folder
}

// enter lists a transfer. The returned context ends when the transfer is stopped. The caller calls
// leave when the transfer has ended.
func (h *Host) enter(ctx context.Context, t *transfer, what string, port uint16) (
	own context.Context, leave func(),
) {
	own, stop := context.WithCancel(ctx)
	u := &h.underway
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last++
	t.id = u.last
	if u.list == nil {
		u.list = map[int]*moving{}
	}
	u.list[t.id] = &moving{stop: stop, folder: t.folder, Underway: control.Underway{
		ID: t.id, Path: t.result.Path, Sent: t.result.Sent, What: what, Port: port,
		Since:    time.Now().Round(0),
		Progress: control.Progress{ID: t.id, Total: -1},
	}}
	return own, func() {
		stop()
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.list, t.id)
	}
}

func (u *underway) note(t *transfer, p control.Progress) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if m := u.list[t.id]; m != nil {
		m.Peer, m.Progress = t.result.Peer, p
	}
}

// transfers returns a snapshot of all running transfers.
func (u *underway) transfers() []control.Underway {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := make([]control.Underway, 0, len(u.list))
	for _, m := range u.list {
		list = append(list, m.Underway)
	}
	slices.SortFunc(list, func(a, b control.Underway) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

func (h *Host) stopTransfer(_ context.Context, r control.StopTransfer) error {
	h.underway.mu.Lock()
	defer h.underway.mu.Unlock()
	m := h.underway.list[r.ID]
	if m == nil {
		return fmt.Errorf("%d: %w; `transfers` lists them", r.ID, control.ErrNoSuchTransfer)
	}
	m.stop()
	return nil
}

// writer describes the transfer that writes to a file that t found locked.
func (u *underway) writer(t *transfer) string {
	file, err := t.folder.Stat(t.part())
	if err != nil {
		return "" // the other transfer has ended
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, m := range u.list {
		if m.ID == t.id || m.Sent || m.Path == "" {
			continue
		}
		other, err := m.folder.Stat(m.Path + ".part")
		if err != nil || !os.SameFile(file, other) {
			continue
		}
		text := fmt.Sprintf(": transfer %d, %s", m.ID, m.What)
		switch {
		case m.Peer.IsValid():
			text += fmt.Sprintf(" from %v", m.Peer)
		case m.Port > 0:
			text += fmt.Sprintf(" on port %d", m.Port)
		}
		return text + fmt.Sprintf("; `cancel %d` stops it", m.ID)
	}
	return ", in another program"
}
