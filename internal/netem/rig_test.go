package netem

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// rig is a queue with a server, but without a link.
type rig struct {
	Queue
	site  Site
	drops []dropped
	marks int
	next  uint64
}

type dropped struct {
	at  clock.Time
	tag uint64
	why Reason
}

// newRig starts a queue in front of a server of a rate in bits a second.
func newRig(t *testing.T, d Discipline, rate int64) *rig {
	t.Helper()
	if v, ok := d.(validator); ok {
		require.NoError(t, v.Validate())
	}
	r := &rig{}
	r.site = Site{
		Drop: func(now clock.Time, p *Packet, why Reason) {
			r.drops = append(r.drops, dropped{now, p.tag, why})
		},
		Mark: func(_ clock.Time, p *Packet) bool {
			ok := markECN(p.data)
			if ok {
				r.marks++
			}
			return ok
		},
		Random: Streams(5)("queue"), Rate: rate,
	}
	r.Queue = d.Start(r.site)
	return r
}

// put puts a packet of zeros into the queue.
func (r *rig) put(now clock.Time, size int) { r.offer(now, make([]byte, size)) }

func (r *rig) offer(now clock.Time, data []byte) {
	r.Put(now, &Packet{data: data, tag: r.next, entered: now})
	r.next++
}

// tagOf takes a packet and returns its number; -1 if the queue was empty.
func (r *rig) tagOf(now clock.Time) int {
	if p := r.Take(now); p != nil {
		return int(p.tag)
	}
	return -1
}

// flow returns an IPv4 UDP packet from a port.
func flow(port byte, ecn byte, size int) []byte {
	b := make([]byte, size)
	copy(b, []byte{
		0x45, ecn, byte(size >> 8), byte(size), 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, port,
	})
	return b
}

const milli = time.Millisecond
