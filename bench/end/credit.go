//go:build linux

package end

import (
	"encoding/binary"
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
	socket *datagram.Socket
	batch  *datagram.Batch
	told   int64 // by the receiver
	lost   int64 // what was given up
}

// spend waits, when so many bytes were sent, until more may be.
func (c *credit) spend(sent int64) error {
	for sent-c.lost-c.told > creditAhead {
		if err := c.socket.SetReadDeadline(time.Now().Add(creditLate)); err != nil {
			return err
		}
		list, err := c.batch.Receive()
		if late(err) {
			c.lost = sent - c.told
			continue
		}
		if err != nil {
			return err
		}
		for _, r := range list {
			if len(r.Data) == 8 {
				c.told = int64(binary.BigEndian.Uint64(r.Data))
			}
		}
	}
	return nil
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
