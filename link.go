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
)

// PipeEnd is one end of a Pipe. As the Link of an Interface it connects a node to the other end. A
// program can also read and write packets itself.
type PipeEnd struct{ end *link.End }

var _ io.ReadWriteCloser = (*PipeEnd)(nil)

// Pipe returns the two ends of a link in memory. Each direction holds up to the given number of
// packets, and as many again while they are read. 0: 1024. If the link is full, a host waits, a
// router drops packets, and a program's Write blocks. Between nodes, several segments of a
// connection may cross as one train.
func Pipe(packets int) (a, b *PipeEnd) {
	x, y := link.Pipe(packets)
	return &PipeEnd{x}, &PipeEnd{y}
}

// Read waits for the next packet and copies it into p. Longer packets are truncated. It returns
// io.EOF when an end is closed and no packet is left.
func (e *PipeEnd) Read(p []byte) (int, error) { return e.inner().Read(p) }

// TryRead is like Read, but does not wait: it returns false if there is no packet.
func (e *PipeEnd) TryRead(p []byte) (n int, ok bool) { return e.inner().TryRead(p) }

// Write sends a packet.
func (e *PipeEnd) Write(p []byte) (int, error) { return e.inner().Write(p) }

// Filter makes the link lose the packets that a node sends, unless pass returns true. Pass is
// called once for a train of segments, with all its bytes. It must not use the link.
func (e *PipeEnd) Filter(pass func(train []byte) bool) { e.inner().Filter(pass) }

// Close ends the link in both directions. The other end can still read the packets in the link.
// Packets that a node sends afterwards are lost.
func (e *PipeEnd) Close() error { return e.inner().Close() }

// Reopen makes an end that was closed usable again: a node that was closed, or that crashed, can be
// started again on the same link. Packets that arrived before are lost. An end that is in use must
// not be reopened.
func (e *PipeEnd) Reopen() { e.inner().Reopen() }

func device(l io.ReadWriteCloser) link.Device {
	if e, ok := l.(*PipeEnd); ok {
		return e.inner()
	}
	return link.Adapt(l)
}

// Way is a direction of packets at an interface.
type Way string

// The directions.
const (
	Out  Way = "out" // packets that the node sends
	In   Way = "in"  // packets that it receives
	Both Way = "both"
)

// ImpairInfo is the configuration and counters of one direction of an interface's impairments. At
// any time Seen + Duplicated = Passed + Lost + QueueDropped + Overflowed + Inside.
type ImpairInfo struct {
	Interface string
	Way       Way    // Out or In
	Words     string // "nothing", or the syntax of Impairments.Words
	Seed      uint64 // of the random choices, configured or drawn; 0: none

	Seen, SeenBytes     uint64 // since the direction was first impaired
	Passed, PassedBytes uint64
	Lost                uint64 // by the loss model
	QueueDropped        uint64 // by the queue of the rate limit, or by the policer
	Overflowed          uint64 // because too many packets were delayed at once
	Duplicated          uint64
	Corrupted           uint64
	Truncated           uint64
	Reordered           uint64
	Delayed             uint64 // that left later than they arrived
	Marked              uint64 // with congestion experienced (CE), instead of dropped
	Inside, Waiting     int    // delayed now, and of these waiting for the rate limit
}

// Impair replaces the impairments of one direction of an interface. The zero Impairments remove
// them. Packets that are delayed at this moment are still delivered.
func (n *Node) Impair(name string, way Way, i Impairments) error {
	if n.node == nil {
		return syscall.EINVAL
	}
	if err := i.validate(); err != nil {
		return fmt.Errorf("tidepool: Impair %s: %w", name, err)
	}
	_, err := n.node.Do(context.Background(), control.Impair{
		Iface: name, Way: control.Way(way), Words: i.String(),
	})
	return err
}

// Impairments returns the impairments of all interfaces. For each interface, Out precedes In.
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

// String returns the impairments in the syntax of Words, or "off".
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

func (i *Impairments) validate() error {
	for _, share := range []float64{i.Loss, i.Duplicate, i.Reorder, i.Corrupt} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("share %v: must be 0 to 1", share)
		}
	}
	if i.Delay < 0 || i.Jitter < 0 || i.Jitter > i.Delay || i.Rate < 0 {
		return fmt.Errorf("delay %v, jitter %v, rate %d: must not be negative, and the "+
			"jitter must not exceed the delay", i.Delay, i.Jitter, i.Rate)
	}
	return nil
}
