package iperf

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// These are the defaults of a client, as in iperf3.
const (
	defaultTime    = 10 * time.Second
	defaultBlock   = 128 << 10
	defaultUDPRate = 1 << 20
	pacing         = 1000 // microseconds; reported but not used
	rcpBlock       = 16 << 10
	udpBlock       = 1460
)

func (h *Host) measure(ctx context.Context, r control.Perf) (control.PerfReport, error) {
	port := cmp.Or(r.Port, control.PerfPort)
	p, err := paramsOf(&r)
	if err != nil {
		return control.PerfReport{}, fmt.Errorf("perf: %w", err)
	}
	c, err := node.ConnectBy(ctx, h.node.TCP.Dial, r.Addr, port)
	if err != nil {
		return control.PerfReport{}, fmt.Errorf("perf: unable to connect to server: %w", err)
	}
	t := h.newTest(false)
	t.control = &wire{conn: c}
	t.start, t.interval = r.Start, r.Interval
	if r.Every != 0 {
		t.every = r.Every
	}
	random := h.node.Secrets("perf of " + c.Local().String())
	t.cookie = NewCookie(rand.New(rand.NewPCG(random(), random())))
	defer t.control.drop()
	defer t.close()
	err = t.run(ctx, func() error { return t.ask(ctx, p) }, t.compare)
	if err == nil {
		return t.report, nil
	}
	// The client reports the part of the test that it has measured.
	if ctx.Err() != nil && t.report.Start.Cookie != "" {
		t.report.Error = "interrupt - " + errClientEnded.Error()
		return t.report, nil
	}
	t.report.Error = err.Error()
	return t.report, fmt.Errorf("perf %v: %w", c.Remote(), control.ReasonOf(ctx, err))
}

// paramsOf returns the test parameters that a request asks for.
func paramsOf(r *control.Perf) (p Params, err error) {
	p = Params{
		Omit: int(r.Omit / time.Second), Time: r.Time.Seconds(), Num: r.Bytes, Blocks: r.Blocks,
		MSS: r.MSS, NoDelay: r.NoDelay, Parallel: max(1, r.Parallel), Reverse: r.Reverse,
		Bidir: r.Bidir, Window: r.Window, Len: r.Length, Bandwidth: r.Rate, Burst: r.Burst,
		TOS: r.TOS, Congestion: r.Congestion, Pacing: pacing, Version: version,
	}
	ends := 0
	for _, set := range []bool{r.Time != 0, r.Bytes != 0, r.Blocks != 0} {
		if set {
			ends++
		}
	}
	switch {
	case ends > 1:
		return p, control.Misuse("time, bytes and blocks cannot be used together")
	case ends == 0:
		p.Time = defaultTime.Seconds()
	}
	switch r.Proto {
	case control.PerfTCP, "":
		p.TCP = true
	case control.PerfUDP:
		p.UDP = true
	case control.PerfRCP:
		p.RCP = true
	case control.PerfRDT:
		p.RDT = true
	default:
		return p, control.Misuse("protocol %q: must be tcp, udp, rcp or rdt", r.Proto)
	}
	if p.RDT && (r.Rate > 0 || r.Length > 0 || r.Bytes > 0 || r.Blocks > 0) {
		return p, control.Misuse(
			"RDT sends whole objects: remove rate, length, bytes and blocks")
	}
	if (p.UDP || p.RCP || p.RDT) && (r.Congestion != "" || r.MSS != 0 || r.NoDelay) {
		return p, control.Misuse(
			"congestion, mss and no_delay are for TCP: remove them for %s", p.Proto())
	}
	switch {
	case r.Rate < 0:
		p.Bandwidth = 0
	case r.Rate == 0 && p.UDP:
		p.Bandwidth = defaultUDPRate
	}
	if err := blockLength(&p); err != nil {
		return p, err
	}
	check := p
	if p.Len == 0 {
		check.Len = MinDatagram
	}
	if p.RDT && !p.Reverse {
		check.RDTPorts = make([]uint16, p.Parallel) // the ports are not known yet
	}
	if err := check.Check(); err != nil {
		return p, control.Misuse("%v", err)
	}
	return p, nil
}

// blockLength sets the size of a block. For UDP it stays 0 until the MSS of the path is known.
func blockLength(p *Params) error {
	switch {
	case p.Len < 0:
		return control.Misuse("length %d: must not be negative", p.Len)
	case p.Len > 0:
	case p.UDP: // the control connection's MSS will determine the size
	case p.RCP:
		p.Len = rcpBlock
	default:
		p.Len = defaultBlock
	}
	return nil
}

// ask runs the client's side of the protocol until the measurement begins.
func (t *test) ask(ctx context.Context, p Params) error {
	c := t.control
	if err := c.write(t.cookie[:]); err != nil {
		return err
	}
	if err := c.expect(ParamExchange); err != nil {
		return err
	}
	if p.Len == 0 {
		p.Len = udpBlock
		if i, err := c.conn.Info(); err == nil && i.SndMSS >= MinDatagram {
			p.Len = i.SndMSS // one packet; iperf3 computes the same length
		}
	}
	if p.RDT {
		if err := t.offer(&p); err != nil {
			return err
		}
	}
	t.agree(p)
	if err := c.send(&t.group.params); err != nil {
		return err
	}
	if err := c.expect(CreateStreams); err != nil {
		return err
	}
	if err := t.connect(ctx); err != nil {
		return err
	}
	for _, s := range []State{TestStart, TestRunning} {
		if err := c.expect(s); err != nil {
			return err
		}
	}
	c.listen()
	return nil
}

// compare exchanges results with the server and ends the test.
func (t *test) compare() error {
	c := t.control
	if err := c.say(TestEnd); err != nil {
		return err
	}
	if err := c.awaitState(ExchangeResults); err != nil {
		return err
	}
	if err := c.send(t.results()); err != nil {
		return err
	}
	theirs, err := t.receiveResults()
	if err != nil {
		return err
	}
	if err := c.expect(DisplayResults); err != nil {
		return err
	}
	t.finish(&theirs)
	err = c.say(Done)
	c.close()
	return err
}

// connect opens the streams of a client, first those on which the client sends.
func (t *test) connect(ctx context.Context) error {
	sends, receives := t.group.params.StreamCounts()
	for i := range sends + receives {
		s := &stream{
			test: t, id: StreamID(i), socket: 5 + i, sender: i < sends,
			remote: t.control.conn.Remote(),
		}
		var err error
		switch {
		case t.group.params.UDP:
			err = t.connectUDP(ctx, s)
		case t.group.params.RDT:
			t.connectRDT(s, i)
		default:
			err = t.connectBytes(ctx, s)
		}
		if err != nil {
			return fmt.Errorf("unable to connect stream %d: %w", s.id, control.Reason(err))
		}
		t.streams = append(t.streams, s)
	}
	return nil
}

// connectBytes opens a stream of TCP or RCP, which begins with the cookie.
func (t *test) connectBytes(ctx context.Context, s *stream) error {
	b := &byteTransport{}
	if t.group.params.RCP {
		c, err := t.host.node.RCP.Dial(ctx, netip.AddrPort{}, s.remote, rcpConfig())
		if err != nil {
			return fmt.Errorf("%w (does the server speak RCP?)", control.Reason(err))
		}
		b.conn, s.local = c, c.Local()
	} else {
		c, err := t.host.node.TCP.Dial(ctx, s.remote)
		if err != nil {
			return err
		}
		b.conn, b.tcp, s.local, s.socket = c, c, c.Local(), c.SID()
	}
	s.transport = b
	err := t.tune(b.tcp)
	if err == nil {
		_, err = b.conn.Write(t.cookie[:])
	}
	if err != nil {
		b.conn.Abort()
	}
	return err
}

// tune sets the options of a TCP stream. It does nothing if c is nil.
func (t *test) tune(c *node.Conn) error {
	if c == nil {
		return nil
	}
	p := &t.group.params
	var err error
	if p.Congestion != "" {
		err = c.SetCongestionControl(p.Congestion)
	}
	if err == nil && p.Window > 0 {
		if err = c.SetReadBuffer(p.Window); err == nil {
			err = c.SetWriteBuffer(p.Window)
		}
	}
	if err == nil && p.MSS > 0 {
		err = c.SetMaxSeg(p.MSS)
	}
	if err == nil && p.NoDelay {
		err = c.SetNoDelay(true)
	}
	if err == nil && p.TOS > 0 {
		err = c.SetTOS(uint8(p.TOS))
	}
	return err
}
