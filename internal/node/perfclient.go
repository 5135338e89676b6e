package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/perf"
)

// What a client wants unless it says otherwise, as iperf3 has it.
const (
	perfTime     = 10 * time.Second
	perfBlock    = 128 << 10
	perfUDPRate  = 1 << 20
	perfPacing   = 1000 // microseconds: only told
	perfRCPBlock = 16 << 10
	perfUDPBlock = 1460
)

// perfClient carries out a measurement.
func (n *Node) perfClient(ctx context.Context, r *control.Perf) (control.PerfReport, error) {
	port := r.Port
	if port == 0 {
		port = control.PerfPort
	}
	p, err := perfParams(r)
	if err != nil {
		return control.PerfReport{}, fmt.Errorf("perf: %w", err)
	}
	c, err := n.connectTo(ctx, r.Addr, port)
	if err != nil {
		return control.PerfReport{}, fmt.Errorf("perf: unable to connect to server: %w", err)
	}
	t := n.newPerfTest(false)
	t.control = &perfControl{conn: c}
	t.start, t.interval = r.Start, r.Interval
	if r.Every != 0 {
		t.every = r.Every
	}
	t.cookie = perf.NewCookie(rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	defer t.control.drop()
	defer t.close()
	err = t.ask(ctx, p)
	if err == nil {
		return t.report, nil
	}
	if ctx.Err() != nil && t.report.Start.Cookie != "" { // it answers with what there is
		t.report.Error = "interrupt - " + errPerfClientEnded.Error()
		return t.report, nil
	}
	t.report.Error = err.Error()
	return t.report, fmt.Errorf("perf %v: %w", c.peer(), fileError(ctx, err))
}

// perfParams are the parameters of a request.
func perfParams(r *control.Perf) (p perf.Params, err error) {
	p = perf.Params{
		Omit: int(r.Omit / time.Second), Time: r.Time.Seconds(), Num: r.Bytes, Blocks: r.Blocks,
		MSS: r.MSS, NoDelay: r.NoDelay, Parallel: max(1, r.Parallel), Reverse: r.Reverse,
		Bidir: r.Bidir, Window: r.Window, Len: r.Length, Bandwidth: r.Rate, Burst: r.Burst,
		TOS: r.TOS, Congestion: r.Congestion, Pacing: perfPacing, Version: perfVersion,
	}
	ends := 0
	for _, set := range []bool{r.Time != 0, r.Bytes != 0, r.Blocks != 0} {
		if set {
			ends++
		}
	}
	switch {
	case ends > 1:
		return p, control.Misuse("a time, bytes and blocks: want one of them")
	case ends == 0:
		p.Time = perfTime.Seconds()
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
		return p, control.Misuse("protocol %q: want tcp, udp, rcp or rdt", r.Proto)
	}
	if p.RDT && (r.Rate > 0 || r.Length > 0 || r.Bytes > 0 || r.Blocks > 0) {
		return p, control.Misuse(
			"RDT sends whole objects: want neither rate, length, bytes nor blocks")
	}
	if (p.UDP || p.RCP || p.RDT) && (r.Congestion != "" || r.MSS != 0 || r.NoDelay) {
		return p, control.Misuse(
			"congestion, mss and no_delay are TCP's: %s has none of them", p.Proto())
	}
	switch {
	case r.Rate < 0:
		p.Bandwidth = 0
	case r.Rate == 0 && p.UDP:
		p.Bandwidth = perfUDPRate
	}
	if err := perfLength(&p); err != nil {
		return p, err
	}
	check := p
	if p.Len == 0 {
		check.Len = perf.MinDatagram
	}
	if p.RDT && !p.Reverse {
		check.RDTPorts = make([]uint16, p.Parallel) // they are known later
	}
	if err := check.Check(); err != nil {
		return p, control.Misuse("%v", err)
	}
	return p, nil
}

// perfLength fills in what is written at once; of UDP it is 0 until the path is known.
func perfLength(p *perf.Params) error {
	switch {
	case p.Len < 0:
		return control.Misuse("a length of %d", p.Len)
	case p.Len > 0:
	case p.UDP: // the control connection will say what fits
	case p.RCP:
		p.Len = perfRCPBlock
	default:
		p.Len = perfBlock
	}
	return nil
}

// ask goes through the protocol as its client.
func (t *perfTest) ask(ctx context.Context, p perf.Params) error {
	c := t.control
	// Until it is measured, and behind that, whoever gives up aborts the connection; a wait of the
	// protocol ends with it.
	stop := context.AfterFunc(ctx, c.conn.Abort)
	defer func() { stop() }()
	c.conn.Guard()
	if err := c.write(t.cookie[:]); err != nil {
		return err
	}
	if err := c.expect(perf.ParamExchange); err != nil {
		return err
	}
	if p.Len == 0 {
		p.Len = perfUDPBlock
		if i, err := c.conn.Info(); err == nil && i.SendMSS >= perf.MinDatagram {
			p.Len = i.SendMSS // one packet: as iperf3 reckons it
		}
	}
	if p.RDT {
		if err := t.offer(&p); err != nil {
			return err
		}
	}
	t.agree(p)
	if err := c.send(&t.params); err != nil {
		return err
	}
	if err := c.expect(perf.CreateStreams); err != nil {
		return err
	}
	if err := t.connect(ctx); err != nil {
		return err
	}
	for _, s := range []perf.State{perf.TestStart, perf.TestRunning} {
		if err := c.expect(s); err != nil {
			return err
		}
	}
	c.listen()
	t.begin()
	stop()
	err := t.measure(ctx)
	t.halt()
	if err != nil {
		if ctx.Err() != nil {
			t.finish(&perf.Results{})
			c.part(perf.ClientTerminate)
		}
		return err
	}
	stop = context.AfterFunc(ctx, c.conn.Abort)
	return t.compare()
}

// compare exchanges results with the server, and ends the test.
func (t *perfTest) compare() error {
	c := t.control
	if err := c.say(perf.TestEnd); err != nil {
		return err
	}
	if err := c.awaitHeard(perf.ExchangeResults); err != nil {
		return err
	}
	if err := c.send(t.results()); err != nil {
		return err
	}
	text, err := c.receive(perf.MaxResults)
	if err != nil {
		return err
	}
	theirs, err := perf.ParseResults(text, len(t.streams))
	if err != nil {
		return err
	}
	if err := c.expect(perf.DisplayResults); err != nil {
		return err
	}
	t.finish(&theirs)
	err = c.say(perf.Done)
	_ = c.conn.Close() // it is delivered, unless the server has gone
	return err
}

// connect opens the streams of a client, those that it sends first.
func (t *perfTest) connect(ctx context.Context) error {
	sends, receives := t.params.Ways()
	for i := range sends + receives {
		s := &perfStream{
			test: t, id: perf.StreamID(i), socket: 5 + i, sender: i < sends,
			remote: t.control.conn.peer(),
		}
		var err error
		switch {
		case t.params.UDP:
			err = t.connectUDP(ctx, s)
		case t.params.RDT:
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
func (t *perfTest) connectBytes(ctx context.Context, s *perfStream) error {
	b := &perfBytes{}
	if t.params.RCP {
		c, err := t.node.DialRCP(ctx, netip.AddrPort{}, s.remote, perfRCP())
		if err != nil {
			return fmt.Errorf("%w (does the server speak RCP?)", control.Reason(err))
		}
		b.conn, s.local = c, c.local()
	} else {
		c, err := t.node.Dial(ctx, s.remote)
		if err != nil {
			return err
		}
		b.conn, b.tcp, s.local, s.socket = c, c, c.local(), c.sid
	}
	s.carrier = b
	err := t.tune(b.tcp)
	if err == nil {
		_, err = b.conn.Write(t.cookie[:])
	}
	if err != nil {
		b.conn.Abort()
	}
	return err
}

// tune sets the options of a TCP stream; nil: it is none.
func (t *perfTest) tune(c *Conn) error {
	if c == nil {
		return nil
	}
	p := &t.params
	var err error
	if p.Congestion != "" {
		err = c.SetCongestionControl(p.Congestion)
	}
	if err == nil && p.Window > 0 {
		err = firstError(c.SetReadBuffer(p.Window), c.SetWriteBuffer(p.Window))
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
