package operator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/observe"
)

// firstProgramSID is the lowest number for sockets of the kernel. The node's own sockets have lower
// numbers.
const firstProgramSID = 1_000_000

// programs lists the kernel's sockets of the programs that run as this host.
type programs struct {
	mu   sync.Mutex
	ask  func() ([]programSocket, error) // queries the kernel; nil: no program has entered
	sids map[uint64]int                  // socket numbers by cookie
	last int
}

// programSocket is a socket of the kernel with its unique number.
type programSocket struct {
	cookie uint64
	control.Socket
}

// enter sets the function that queries the kernel.
func (p *programs) enter(ask func() ([]programSocket, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ask = ask
}

// sockets returns the sockets, sorted by number. The number of a socket does not change.
func (p *programs) sockets() ([]control.Socket, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ask == nil {
		return nil, nil
	}
	found, err := p.ask()
	if err != nil {
		return nil, fmt.Errorf("sockets of programs: %w", err)
	}
	list, sids := make([]control.Socket, 0, len(found)), make(map[uint64]int, len(found))
	for _, s := range found {
		sid, known := p.sids[s.cookie]
		if !known {
			sid = firstProgramSID + p.last
			p.last++
		}
		sids[s.cookie] = sid
		s.SID, s.Program = sid, true
		list = append(list, s.Socket)
	}
	p.sids = sids
	slices.SortFunc(list, func(a, b control.Socket) int { return a.SID - b.SID })
	return list, nil
}

func (p *programs) socket(sid int) (control.Socket, error) {
	list, err := p.sockets()
	if err != nil {
		return control.Socket{}, err
	}
	i := slices.IndexFunc(list, func(s control.Socket) bool { return s.SID == sid })
	if i < 0 {
		return control.Socket{}, fmt.Errorf("%d: %w", sid, control.ErrNoSuchSocket)
	}
	return list[i], nil
}

// notOurs returns the error for a socket number that the node does not have.
func notOurs(sid int) error {
	if sid >= firstProgramSID {
		return fmt.Errorf("%d: %w: only the program that opened it can use it", sid,
			control.ErrUnsupported)
	}
	return fmt.Errorf("%d: %w", sid, control.ErrNoSuchSocket)
}

// samples reports the state of a program's connection until ctx or the connection ends.
func (p *programs) samples(
	ctx context.Context, h *Requests, r *control.Samples, every time.Duration,
) (done control.Sampled, err error) {
	if _, err = p.socket(r.SID); err != nil {
		return done, err
	}
	if r.Begun != nil {
		r.Begun()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s, err := p.socket(r.SID)
		if err != nil || s.Info == nil {
			return done, nil // the connection was closed
		}
		done.Samples++
		if r.Sample != nil {
			r.Sample(control.Sample{
				At: h.node.Time.Now(), SID: r.SID, State: s.State, Info: s.Info,
				Acked:    s.Info.BytesAcked,
				Sent:     s.Info.BytesAcked + uint64(s.SendQ-s.Info.NotSentBytes),
				Received: s.Info.BytesReceived,
			})
		}
		select {
		case <-ctx.Done():
			return done, nil
		case <-h.node.Stopped():
			return done, nil
		case <-tick.C:
		}
	}
}

// programTaps are the taps of a node. They also find the sockets of programs.
type programTaps struct {
	*node.Taps
	programs *programs
}

func (t programTaps) ObserveSocket(
	o *observe.Observer, sid int, recorded bool,
) (observe.Beginning, error) {
	if sid < firstProgramSID {
		return t.Taps.ObserveSocket(o, sid, recorded)
	}
	s, err := t.programs.socket(sid)
	switch {
	case err != nil:
		return observe.Beginning{}, err
	case s.Info == nil:
		return observe.Beginning{}, fmt.Errorf("%d: %w", sid, control.ErrNotConnected)
	}
	node.FollowFlow(o, s.Local, s.Remote)
	return observe.Beginning{}, t.Observe(o)
}
