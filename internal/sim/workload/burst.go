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

// BurstConfig is the document's thought experiment: some packets at once, one way, and how
// many the sender sends until it knows that all have arrived. The zero one is the document's
// fence.
type BurstConfig struct {
	// Name is of the random streams; empty: "burst".
	Name string
	// Packets is how many there are; 0: 16.
	Packets int
	// RCP is how both ends are. Its zeros mean what Config says, but for a Timeout of 200
	// Ticks: nothing here is about silence.
	RCP rcp.Config
}

const (
	burstPackets      = 16
	burstTimeoutTicks = 200
	maxBurst          = 1 << 10
)

// BurstResult is the state of a burst.
type BurstResult struct {
	// Finished says that every packet is acknowledged; Failure says what happened if not.
	Finished bool
	Failure  string
	// Sent counts packets with data, each time that they were sent, and Rounds the rounds of
	// the send loop in which any was.
	Sent, Rounds uint64
	// Took is from the first of them to the acknowledgment of the last.
	Took time.Duration
}

// Burst is a burst under way.
type Burst struct {
	cfg    BurstConfig
	socket *rcp.Socket
	last   clock.Time
	began  clock.Time // never: the connection is not open yet
	result BurstResult
	over   bool
}

// AttachBurst makes a host send a burst to another, at the address and UDP port at, as soon as they
// have a connection. Errors are those of Attach.
func AttachBurst(from, to *sim.Host, at netip.AddrPort, cfg BurstConfig) (*Burst, error) {
	cfg.Name = cmp.Or(cfg.Name, "burst")
	cfg.Packets = cmp.Or(cfg.Packets, burstPackets)
	cfg.RCP.Tick = cmp.Or(cfg.RCP.Tick, defaultTick)
	cfg.RCP.Timeout = cmp.Or(cfg.RCP.Timeout, burstTimeoutTicks*cfg.RCP.Tick)
	cfg.RCP.PacketSize = cmp.Or(cfg.RCP.PacketSize, 256)
	if cfg.Packets < 1 || cfg.Packets > maxBurst {
		return nil, fmt.Errorf("%w: %d packets: must be 1 to %d", ErrEchoConfig, cfg.Packets,
			maxBurst)
	}
	whole := EchoConfig{Name: cfg.Name, RCP: transport(cfg.RCP)}
	c, s, err := newPorts(from, to, &whole)
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

// sent is shown what leaves.
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

// Done reports whether everything is acknowledged, or never will be.
func (b *Burst) Done() bool { return b.over }

// Result returns the result of the burst so far.
func (b *Burst) Result() BurstResult {
	r := b.result
	if !b.over {
		r.Failure = "was not done"
	}
	return r
}
