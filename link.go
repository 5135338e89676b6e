package tidepool

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// PipeEnd is one end of a Pipe. Given to an Interface it joins a node to whatever
// is at the other end; otherwise a program reads and writes the packets.
type PipeEnd struct{ end *link.End }

var _ io.ReadWriteCloser = (*PipeEnd)(nil)

// Pipe returns the two ends of a link in memory. At most packets wait in each
// direction, and as many again are being read; 0: 1024. A node whose link is full
// waits, or drops if it is a router, and a program's Write waits. Between nodes,
// packets cross in trains, as TCP made them.
func Pipe(packets int) (a, b *PipeEnd) {
	x, y := link.Pipe(packets)
	return &PipeEnd{x}, &PipeEnd{y}
}

// Read waits for the next packet and copies it into p; what does not fit is cut
// off. It returns io.EOF once an end was closed and nothing is left.
func (e *PipeEnd) Read(p []byte) (int, error) { return e.inner().Read(p) }

// TryRead is Read for a program that does not wait: it returns false when there
// is no packet.
func (e *PipeEnd) TryRead(p []byte) (n int, ok bool) { return e.inner().TryRead(p) }

// Write sends a packet.
func (e *PipeEnd) Write(p []byte) (int, error) { return e.inner().Write(p) }

// Close ends the link in both directions. The other end may still read what is
// under way; what a node sends from then on is lost.
func (e *PipeEnd) Close() error { return e.inner().Close() }

// device makes a node's device of a link.
func device(l io.ReadWriteCloser) link.Device {
	if e, ok := l.(*PipeEnd); ok {
		return e.inner()
	}
	return link.Adapt(l)
}

// Way is a direction of packets at an interface.
type Way string

// The ways.
const (
	Out  Way = "out" // what the node sends
	In   Way = "in"  // what it receives
	Both Way = "both"
)

// ImpairInfo is what one way of an interface does to packets on purpose, and did. At
// any time Seen + Duplicated = Passed + Lost + QueueDropped + Overflowed + Inside.
type ImpairInfo struct {
	Interface string
	Way       Way    // Out or In
	Words     string // "nothing", or as Impairments.Words has them
	Seed      uint64 // of its luck, its own or drawn; 0: none

	Seen, SeenBytes     uint64 // since the way was first impaired
	Passed, PassedBytes uint64
	Lost                uint64 // on the wire
	QueueDropped        uint64 // by the queue of its rate, or by the policer
	Overflowed          uint64 // because more was inside than may be
	Duplicated          uint64
	Corrupted           uint64
	Truncated           uint64
	Reordered           uint64
	Delayed             uint64 // that left later than they came
	Marked              uint64 // with congestion experienced, instead of dropped
	Inside, Waiting     int    // on their way now, and of these for the rate
}

// Impair makes the link of an interface worse than it is from now on, in place of what
// it was; the zero Impairments end it. What is on its way then arrives.
func (n *Node) Impair(name string, way Way, i Impairments) error {
	if n.node == nil {
		return syscall.EINVAL
	}
	if _, err := i.internal(); err != nil {
		return fmt.Errorf("tidepool: Impair %s: %w", name, err)
	}
	_, err := n.node.Do(context.Background(), control.Impair{
		Iface: name, Way: control.Way(way), Words: i.String(),
	})
	return err
}

// Impairments tells of every interface what it does to packets, out and then in.
func (n *Node) Impairments() ([]ImpairInfo, error) {
	if n.node == nil {
		return nil, syscall.EINVAL
	}
	list, err := control.Ask(context.Background(), n.node, control.Impairments{})
	if err != nil {
		return nil, err
	}
	infos := make([]ImpairInfo, len(list))
	for k, i := range list {
		infos[k] = ImpairInfo{
			Interface: i.Iface, Way: Way(i.Way), Words: i.Words, Seed: i.Seed,
			Seen: i.Seen, SeenBytes: i.SeenBytes, Passed: i.Passed, PassedBytes: i.PassedBytes,
			Lost: i.Lost, QueueDropped: i.QueueDropped, Overflowed: i.Overflowed,
			Duplicated: i.Duplicated, Corrupted: i.Corrupted, Truncated: i.Truncated,
			Reordered: i.Reordered, Delayed: i.Delayed, Marked: i.Marked,
			Inside: i.Inside, Waiting: i.Waiting,
		}
	}
	return infos, nil
}

// String returns the impairments in words, "off" for none.
func (i Impairments) String() string {
	var words []string
	share := func(name string, p float64) {
		if p > 0 {
			words = append(words, name, strconv.FormatFloat(p*100, 'g', 12, 64)+"%")
		}
	}
	if i.Delay > 0 || i.Jitter > 0 {
		words = append(words, "delay", i.Delay.String(), i.Jitter.String())
	}
	share("loss", i.Loss)
	share("duplicate", i.Duplicate)
	share("reorder", i.Reorder)
	share("corrupt", i.Corrupt)
	if i.Rate > 0 {
		words = append(words, "rate", strconv.FormatInt(i.Rate, 10)+"bit")
	}
	words = append(words, strings.Fields(i.Words)...)
	if len(words) == 0 {
		return "off"
	}
	if i.Seed != 0 {
		words = append(words, "seed", strconv.FormatUint(i.Seed, 10))
	}
	return strings.Join(words, " ")
}

func (i *Impairments) internal() (to lnx.Impairments, err error) {
	for _, share := range []struct {
		from float64
		to   *lnx.Share
	}{
		{i.Loss, &to.Loss},
		{i.Duplicate, &to.Duplicate},
		{i.Reorder, &to.Reorder},
		{i.Corrupt, &to.Corrupt},
	} {
		if !(share.from >= 0 && share.from <= 1) {
			return to, fmt.Errorf("a share of %v: want 0 to 1", share.from)
		}
		*share.to = lnx.ShareOf(share.from)
	}
	if i.Delay < 0 || i.Jitter < 0 || i.Jitter > i.Delay || i.Rate < 0 {
		return to, fmt.Errorf("delay %v, jitter %v, rate %d: want none negative, and no more "+
			"jitter than delay", i.Delay, i.Jitter, i.Rate)
	}
	to.Delay, to.Jitter, to.RateBitsPerSec = i.Delay, i.Jitter, i.Rate
	return to, nil
}
