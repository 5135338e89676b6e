//go:build linux

package end

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/bench/datagram"
)

// The receiver of a ceiling reports its byte count periodically, and the sender stays ahead of it
// by at most the kernel's queue. Otherwise the kernel would drop packets that had cost CPU time,
// and the measured ceiling would be too low.
const (
	creditEvery = 256 << 10
	creditAhead = 3 << 20
	// creditLate is the time after which unreported bytes count as lost.
	creditLate = 20 * time.Millisecond
)

// credit is the sender's view of its receiver.
type credit struct {
	socket *datagram.Socket
	batch  *datagram.Batch
	acked  int64 // bytes that the receiver has reported
	lost   int64 // bytes that count as lost
}

// spend waits until a sender that has sent this number of bytes may send more.
func (c *credit) spend(sent int64) error {
	for sent-c.lost-c.acked > creditAhead {
		if err := c.socket.SetReadDeadline(time.Now().Add(creditLate)); err != nil {
			return err
		}
		list, err := c.batch.Receive()
		if late(err) {
			c.lost = sent - c.acked
			continue
		}
		if err != nil {
			return err
		}
		for _, r := range list {
			if len(r.Data) == 8 {
				c.acked = int64(binary.BigEndian.Uint64(r.Data))
			}
		}
	}
	return nil
}

// creditReporter reports the received bytes to the sender.
type creditReporter struct {
	reported, all int64
	text          [8]byte
}

func (r *creditReporter) add(s *datagram.Socket, bytes int) {
	r.all += int64(bytes)
	if r.all-r.reported < creditEvery {
		return
	}
	r.reported = r.all
	binary.BigEndian.PutUint64(r.text[:], uint64(r.all))
	_ = s.Send([]unix.Iovec{datagram.Piece(r.text[:])}, 8, 8) // may be lost: another report follows
}
