package workload

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// BurstConfig configures the document's thought experiment: a burst of packets in one direction.
// The experiment counts the packets that the sender sends until all are acknowledged. The zero
// value is the document's fence.
type BurstConfig struct {
	// Packets is the number of packets; 0: 16.
	Packets int
	// RCP configures both ends. Zero fields have the defaults of an EchoConfig, except for a
	// Timeout of 200 Ticks, because this experiment does not test the timeout, and a PacketSize of
	// 256.
	RCP rcp.Config
}

const (
	burstPackets      = 16
	burstTimeoutTicks = 200
	maxBurst          = 1 << 10
)

// BurstResult is the state of a burst.
type BurstResult struct {
	// Finished means that every packet is acknowledged. Otherwise Failure has the reason.
	Finished bool
	Failure  string
	// Sent counts transmissions of packets with data. Rounds counts the iterations of the send loop
	// that sent a packet.
	Sent, Rounds uint64
	// Took is the time from the first to the last transmission of a packet with data.
	Took time.Duration
}

// Burst is a running burst.
type Burst struct {
	cfg    BurstConfig
	socket *rcp.Socket
	last   clock.Time
	began  clock.Time // start of the burst; Never: the connection is not open yet
	result BurstResult
	over   bool
}

// AttachBurst makes a host send a burst to another, at the address and UDP port at, as soon as they
// have a connection. It returns the errors of AttachEcho.
func AttachBurst(from, to *sim.Host, at netip.AddrPort, cfg BurstConfig) (*Burst, error) {
	cfg.Packets = cmp.Or(cfg.Packets, burstPackets)
	cfg.RCP.Tick = cmp.Or(cfg.RCP.Tick, defaultTick)
	cfg.RCP.Timeout = cmp.Or(cfg.RCP.Timeout, burstTimeoutTicks*cfg.RCP.Tick)
	cfg.RCP.PacketSize = cmp.Or(cfg.RCP.PacketSize, 256)
	if cfg.Packets < 1 || cfg.Packets > maxBurst {
		return nil, fmt.Errorf("%w: %d packets: must be 1 to %d", ErrEchoConfig, cfg.Packets,
			maxBurst)
	}
	c, s, err := newPorts(from, to, "burst", transport(cfg.RCP))
	if err != nil {
		return nil, err
	}
	buf := make([]byte, 1<<16)
	s.serve(func(s *rcp.Socket) {
		for s.Rx().Read(buf) > 0 {
			continue
		}
	})
	if _, err := to.BindUDP(at.Port(), s); err != nil {
		return nil, err
	}
	b := &Burst{cfg: cfg}
	if b.socket, err = c.router.Connect(from.World().Now(), at); err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	c.user = func(now clock.Time) clock.Time { return b.turn(now, c.router) }
	c.sent = b.sent
	_, err = from.BindUDP(0, c)
	return b, err
}

func (b *Burst) turn(now clock.Time, r *rcp.Router) clock.Time {
	if b.over {
		return clock.Never
	}
	i := b.socket.Info()
	switch {
	case b.socket.State() == rcp.Closed:
		b.end(fmt.Sprintf("%v: %d of %d packets acknowledged", b.socket.Err(), max(i.Una, 1)-1,
			b.cfg.Packets))
	case b.began == clock.Never && i.Una == 1:
		b.began = now
		piece := make([]byte, b.cfg.RCP.PacketSize)
		for range b.cfg.Packets {
			b.socket.Tx().Write(piece)
		}
	case i.Una == 1+uint64(b.cfg.Packets):
		b.end("")
		r.Close()
	}
	return clock.Never
}

// sent observes the packets that leave.
func (b *Burst) sent(now clock.Time, p []byte) {
	if b.began == clock.Never || p[0] != byte(rcp.DAT) {
		return
	}
	if b.result.Sent == 0 {
		b.began = now
	}
	b.result.Sent++
	if now != b.last {
		b.last = now
		b.result.Rounds++
	}
	b.result.Took = now.Sub(b.began)
}

func (b *Burst) end(failure string) {
	b.over = true
	b.result.Finished, b.result.Failure = failure == "", failure
}

// Done reports whether everything is acknowledged, or the burst has failed.
func (b *Burst) Done() bool { return b.over }

// Result returns the result of the burst so far.
func (b *Burst) Result() BurstResult {
	r := b.result
	if !b.over {
		r.Failure = "not finished"
	}
	return r
}
