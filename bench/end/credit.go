//go:build linux

package end

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/bench/datagram"
)

// A ceiling's receiver tells now and then how much it has got, and the sender is never further
// ahead than the kernel's queue has room for: what is lost in there costs time and counts for
// nothing, so a ceiling without this would be lower than what it is a ceiling of.
const (
	creditEvery = 256 << 10
	creditAhead = 3 << 20
	// creditLate is when what was not told of is given up: it was lost.
	creditLate = 20 * time.Millisecond
)

// credit is what a sender knows of its receiver.
type credit struct {
	lost int64
	told atomic.Int64
	bell chan struct{}
}

// listen hears what the receiver tells.
func (c *credit) listen(s *datagram.Socket) {
	batch := s.NewBatch(4)
	for {
		list, err := batch.Receive()
		if err != nil {
			return
		}
		for _, r := range list {
			if len(r.Data) == 8 {
				c.told.Store(int64(binary.BigEndian.Uint64(r.Data)))
			}
		}
		select {
		case c.bell <- struct{}{}:
		default:
		}
	}
}

// spend waits, when so many bytes were sent, until more may be.
func (c *credit) spend(sent int64) {
	for sent-c.lost-c.told.Load() > creditAhead {
		select {
		case <-c.bell:
		case <-time.After(creditLate):
			c.lost = sent - c.told.Load()
		}
	}
}

// teller tells a sender what has come.
type teller struct {
	told, all int64
	text      [8]byte
}

func (t *teller) add(s *datagram.Socket, bytes int) {
	t.all += int64(bytes)
	if t.all-t.told < creditEvery {
		return
	}
	t.told = t.all
	binary.BigEndian.PutUint64(t.text[:], uint64(t.all))
	_ = s.Send([]unix.Iovec{datagram.Piece(t.text[:])}, 8, 8) // another will follow
}
