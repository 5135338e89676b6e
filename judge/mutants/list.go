package main

// mutant is a planted fault: an edit of the code under test.
type mutant struct {
	name  string
	about string // description of the effect
	file  string
	old   string // text to replace, which occurs once in the file
	new   string
	// presets are the experiments that the fault may affect.
	presets []string
}

const (
	window   = "internal/tcp/congestion/lossbased.go"
	cubic    = "internal/tcp/congestion/cubic.go"
	bbr      = "internal/tcp/congestion/bbr.go"
	recovery = "internal/tcp/recovery/episode.go"
)

var (
	renoPresets = []string{
		"check-mathis", "check-bernoulli", "check-reno-buffer", "check-ecn", "check-aqm",
		"check-fq-share", "check-rtt-share", "pantheon-5",
	}
	cubicPresets = []string{
		"check-cubic-window", "check-ns3-cubic", "check-ns3-validation", "cubic-reno-buffer",
		"check-cubic-reno", "check-bbr-loss", "check-rtt-share",
	}
	bbrPresets = []string{
		"check-bbr", "check-bbr-loss", "check-bbr-cubic", "pantheon-1", "pantheon-5", "rmcat-5.1",
		"rmcat-5.2", "rmcat-5.4",
	}
	aqmPresets   = []string{"check-aqm", "check-ecn", "check-fq-share", "check-ns3-validation"}
	fencePresets = []string{
		"fence", "fence-16", "fence-phase", "fence-width", "fence-timer", "fence-tcp",
	}
	notebookPresets = []string{
		"fixed+tahoe", "fixed-1000", "tahoe-high", "tahoe-low", "tahoe-low-queue", "two-fixed",
		"two-tahoe", "fixed+tahoe-published", "fixed-1000-published", "tahoe-high-published",
		"tahoe-low-published", "two-fixed-published", "two-tahoe-published",
	}
	publishedPresets = []string{
		"fixed+tahoe-published", "fixed-1000-published", "tahoe-high-published",
		"tahoe-low-published", "two-fixed-published", "two-tahoe-published",
	}
	objectPresets = []string{
		"rdt-baseline", "rdt-delay", "rdt-dup", "rdt-reorder", "hol-20",
	}
	linkPresets = []string{
		"ack-path", "check-fixed-window", "check-slow-start", "check-codel-drops", "check-reno-share",
		"policer", "pantheon-2", "pantheon-7", "pantheon-8", "pantheon-9", "pantheon-10",
		"pantheon-11", "pantheon-12", "rmcat-5.1", "rmcat-5.2", "rmcat-5.4", "rmcat-5.5",
		"rmcat-5.6", "rmcat-5.7", "rmcat-5.8", "rdt-baseline", "rdt-delay", "files-clean", "files-2pct",
	}
)

var mutants = []mutant{
	{
		"reno-beta", "Reno reduces its window to 0.6, not 0.5", window,
		"min(l.FlightSize, w.cwnd)/2", "min(l.FlightSize, w.cwnd)*3/5", renoPresets,
	},
	{
		"reno-alpha", "Reno grows by two segments a round trip", window,
		"min(w.cwnd+mss, w.max)", "min(w.cwnd+2*mss, w.max)", renoPresets,
	},
	{
		"ssthresh-cwnd", "ssthresh is half of cwnd, not of the data in flight", window,
		"min(l.FlightSize, w.cwnd)/2", "w.cwnd/2",
		[]string{"check-app-limited"},
	},
	{
		"abc-1", "slow start grows by one segment for two", window,
		"min(n, w.ssthresh-w.cwnd)", "min(n/2, w.ssthresh-w.cwnd)",
		[]string{"check-slow-start", "tahoe-high", "tahoe-low", "files-clean"},
	},
	{
		"prr-off", "recovery sends everything below ssthresh at once", recovery,
		"left := v.Episode.cwnd - pipe", "left := v.CC.Ssthresh() - pipe", renoPresets,
	},
	{
		"sack-off", "no SYN permits SACK", "internal/tcp/handshake.go",
		"o.SACKPermitted = is.sack && knobs.acceptsSACK()", "o.SACKPermitted = false",
		[]string{"check-bernoulli", "rdt-loss", "rdt-corrupt", "rdt-dup", "fence-tcp", "check-bbr-loss"},
	},
	{
		"dupacks-off", "NewReno counts no duplicate acknowledgments", "internal/tcp/recovery/newreno.go",
		"v.Episode.dupAcks += r.Dups", "v.Episode.dupAcks += 0 * r.Dups",
		[]string{"check-reorder", "files-2pct", "window-47m"},
	},
	{
		"rto-kept", "a doubled RTO stays doubled", "internal/tcp/recovery/ack.go",
		"v.Backoff = 0 // RFC 6298 §5.7: a new measurement ends the backing off", "_ = v.Backoff",
		[]string{"files-2pct", "window-47m"},
	},
	{
		"reno-one", "Reno restarts from one segment after each loss", window,
		"w.cwnd = min(w.cwnd, w.ssthresh)", "w.cwnd = l.MSS",
		[]string{"rmcat-5.2", "pantheon-2"},
	},
	{
		"reno-slow", "Reno grows by a segment in two round trips", window,
		"for w.acked += n; w.acked", "for w.acked += n / 2; w.acked",
		[]string{"pantheon-5"},
	},
	{
		"delayed-ack-off", "each segment is acknowledged at once", "internal/tcp/delack.go",
		"a.pending >= 2*r.mss", "a.pending > 0",
		[]string{"ack-path", "check-fixed-window"},
	},
	{
		"rto-min", "the minimum RTO is five times too large", "internal/tcp/recovery/rtt.go",
		"max(e.SRTT+4*e.rttvar, o.RTOMin)", "max(e.SRTT+4*e.rttvar, 5*o.RTOMin)",
		[]string{"rdt-loss", "fence-tcp", "files-2pct", "tahoe-low", "two-tahoe", "fixed-1000"},
	},
	{
		"ecn-ignored", "senders ignore ECN marks", "internal/tcp/input.go",
		"if c.hs.echoed(s) {\n", "if false {\n", aqmPresets,
	},
	{
		"rack-impatient", "RACK does not wait for reordered segments", "internal/tcp/recovery/rack.go",
		"min(time.Duration(k.mult)*v.RTT.lowest()/4, v.RTT.SRTT)", "0",
		[]string{"check-reorder"},
	},
	{
		"rack-patient", "RACK waits four round trips for reordered segments", "internal/tcp/recovery/rack.go",
		"min(time.Duration(k.mult)*v.RTT.lowest()/4, v.RTT.SRTT)", "4 * v.RTT.SRTT",
		[]string{"rdt-reorder"},
	},
	{
		"wrap", "sequence numbers stop at 2^32", "internal/tcp/seq.go",
		"return ref + uint64(int64(int32(s-uint32(ref))))", "return wideBase + uint64(s)",
		[]string{"wrap-5g"},
	},
	{
		"tahoe-beta", "Tahoe recovers like Reno", "internal/tcp/congestion/tahoe.go",
		"t.cwnd = l.MSS", "t.cwnd = max(t.cwnd, l.MSS)",
		[]string{"tahoe-low", "tahoe-low-queue", "two-tahoe", "tahoe-high", "fixed+tahoe", "check-reno-share"},
	},
	{"cubic-c", "CUBIC's C is 0.8", cubic, "cubicC    = 0.4", "cubicC    = 0.8", cubicPresets},
	{"cubic-beta", "CUBIC reduces its window to 0.8", cubic, "cubicBeta = 0.7", "cubicBeta = 0.8", cubicPresets},
	{
		"cubic-half", "CUBIC reduces its window to 0.5", cubic, "cubicBeta = 0.7", "cubicBeta = 0.5",
		[]string{"check-ns3-cubic", "check-cubic-reno", "cubic-reno-buffer"},
	},
	{
		"cubic-tenth", "CUBIC reduces its window to 0.1", cubic, "cubicBeta = 0.7", "cubicBeta = 0.1",
		[]string{"rmcat-5.1", "rmcat-5.2", "pantheon-2", "check-bbr-loss"},
	},
	{
		"cubic-alpha", "CUBIC's Reno-friendly window grows three times as fast", cubic,
		"cubicAlpha = 3 *", "cubicAlpha = 9 *", cubicPresets,
	},
	{
		"bbr-gain", "BBR probes at 1.5 times the rate and never drains", "internal/tcp/congestion/bbr_model.go",
		"b.pacing = 0.75", "b.pacing = 1.5", bbrPresets,
	},
	{
		"bbr-startup", "BBR's Startup gain is 1.5", bbr,
		"bbrHighGain    = 2.885", "bbrHighGain    = 1.5  ",
		[]string{"check-bbr"},
	},
	{
		"bbr-probe-rtt", "BBR's ProbeRTT takes 600 ms", "internal/tcp/congestion/bbr_sender.go",
		"200 * time.Millisecond", "600 * time.Millisecond", bbrPresets,
	},
	{
		"bbr-window", "BBR's window is three bandwidth-delay products, not two", "internal/tcp/congestion/bbr_sender.go",
		"bbrCwndGain     = 2.0", "bbrCwndGain     = 3.0",
		[]string{"check-bbr", "check-bbr-cubic"},
	},
	{
		"bbr-narrow", "BBR's window is 1.2 bandwidth-delay products, not two", "internal/tcp/congestion/bbr_sender.go",
		"bbrCwndGain     = 2.0", "bbrCwndGain     = 1.2",
		[]string{"check-bbr-cubic"},
	},
	{
		"bbr-margin", "BBR paces 10 % below the rate, not 1 %", "internal/tcp/congestion/bbr_sender.go",
		"bbrPacingMargin = 0.99", "bbrPacingMargin = 0.90",
		[]string{"check-bbr", "check-reno-share", "pantheon-1"},
	},
	{
		"bbr-pipe", "BBR keeps 8 segments in ProbeRTT", "internal/tcp/congestion/bbr_sender.go",
		"bbrMinPipe      = 4", "bbrMinPipe      = 8",
		[]string{"check-bbr"},
	},
	{
		"bbr-loss", "BBR's window stays reduced after a loss", bbr,
		"b.restoreCwnd()\n\tb.loss.open", "b.cwnd, b.bw.most = b.minPipe(), b.bw.most/2\n\tb.loss.open", bbrPresets,
	},
	{
		"codel-law", "CoDel's drop rate grows with the number of drops, not its square root", "internal/netem/codel.go",
		"math.Sqrt(float64(count))", "math.Abs(float64(count))", append([]string{"check-codel-drops"}, aqmPresets...),
	},
	{
		"codel-target", "CoDel's target is 15 ms", "internal/netem/codel.go",
		"codelTarget   = 5 *", "codelTarget   = 15 *", append([]string{"check-codel-drops", "check-ns3-cubic"}, aqmPresets...),
	},
	{
		"codel-no-ecn", "CoDel drops packets that it should mark", "internal/netem/codel.go",
		"return c.ecn && c.mark(now, p)", "return false",
		[]string{"check-ecn", "check-ns3-validation"},
	},
	{
		"fq-one", "FQ-CoDel has one queue", "internal/netem/fqcodel.go",
		"f := &q.flows[flowHash(p.data, q.salt)>>32*uint64(len(q.flows))>>32]",
		"f := &q.flows[0*flowHash(p.data, q.salt)]",
		[]string{"check-fq-share"},
	},
	{
		"fq-codel-off", "FQ-CoDel's queues never drop early", "internal/netem/fqcodel.go",
		"p := q.law.take(now, &f.state, &f.ring)",
		"p, _ := q.law.dequeue(now, &f.state, &f.ring)",
		[]string{"check-aqm", "check-ns3-cubic"},
	},
	{
		"pie-target", "PIE aims at twice its target", "internal/netem/pie.go",
		"(wait - q.cfg.Target).Seconds()", "(wait - 2*q.cfg.Target).Seconds()",
		[]string{"check-aqm"},
	},
	{
		"red-p", "RED drops with twice the probability", "internal/netem/red.go",
		"float64(q.cfg.MaxP * ((", "float64(2 * q.cfg.MaxP * ((",
		[]string{"check-aqm"},
	},
	{
		"red-count", "RED forgets when it dropped last", "internal/netem/red.go",
		"	q.count++\n", "	q.count = 0\n",
		[]string{"check-aqm"},
	},
	{
		"queue-half", "a queue holds half of its limit", "internal/netem/queue.go",
		"q.room.holds(q.ring.n+1, q.ring.bytes+len(p.data))",
		"q.room.holds(2*q.ring.n+1, 2*q.ring.bytes+len(p.data))",
		append([]string{"check-reno-buffer", "cubic-reno-buffer", "check-aqm", "check-bbr-cubic"}, append(notebookPresets, linkPresets...)...),
	},
	{
		"rate-97", "a link has 97 % of its rate", "internal/netem/rate.go",
		"rate: uint64(b)}", "rate: uint64(b) * 97 / 100}", linkPresets,
	},
	{
		"rate-90", "a link has 90 % of its rate", "internal/netem/rate.go",
		"rate: uint64(b)}", "rate: uint64(b) * 90 / 100}",
		[]string{"files-clean", "hol-20", "rdt-dup"},
	},
	{
		"delay-double", "a link's delay counts twice", "internal/netem/link.go",
		"cfg, nil, nil, nil, nil, nil\n", "cfg, nil, nil, nil, nil, nil\n\tl.cfg.Delay *= 2\n",
		[]string{"check-reno-buffer", "check-fixed-window", "policer", "pantheon-7", "pantheon-8", "pantheon-9", "pantheon-10", "pantheon-11", "pantheon-12", "tahoe-high", "tahoe-low", "tahoe-low-queue"},
	},
	{
		"trace-slow", "a random trace has 90 % of its rate", "internal/netem/trace_generate.go",
		"mean := time.Duration(stretch * traceBits * int64(time.Second) / rate)",
		"mean := time.Duration(stretch * traceBits * int64(time.Second) / (rate * 9 / 10))", append([]string{"pantheon-2"}, notebookPresets...),
	},
	{
		"policer-rate", "a policer has 103 % of its rate", "internal/netem/policer.go",
		"p.tokens += took * int64(p.Rate)", "p.tokens += took * int64(p.Rate) * 103 / 100",
		[]string{"policer"},
	},
	{
		"loss-half", "random loss has half its rate", "internal/netem/loss.go",
		"random.Float64() < float64(u)", "random.Float64() < float64(u)/2",
		append([]string{"check-bernoulli", "check-bbr-loss", "rdt-loss", "window-47m"}, fencePresets...),
	},
	{
		"loss-one-way", "up: same does not repeat the loss", "internal/lab/plan/path.go",
		"x.Path.Down, x.Path.Up = down.Config, up.Config",
		"if x.path.get(\"up\").plain(\"same\") {\n\t\tup.Loss = nil\n\t}\n\tx.Path.Down, x.Path.Up = down.Config, up.Config",
		fencePresets,
	},
	{
		"jitter-off", "jitter is drawn but not used", "internal/netem/link.go",
		"delay = max(0, delay+l.drawJitter(now))", "l.drawJitter(now)",
		[]string{"rdt-delay"},
	},
	{
		"app-slow", "an application with a rate has 90 % of it", "internal/lab/simulation/source.go",
		"app.MayWrite(now.Sub(s.flow.begun),", "app.MayWrite(now.Sub(s.flow.begun)*9/10,",
		[]string{"rmcat-5.6", "check-app-limited"},
	},
	{
		"sd-n", "the variance divides by n, not by n-1", "internal/lab/result/stat.go",
		"(squares - rounding*rounding/n) / (n - 1)", "(squares - rounding*rounding/n) / n",
		[]string{"two-fixed-published"},
	},
	{
		"jain-n", "Jain's index divides by n-1", "internal/lab/result/stat.go",
		"float64(len(shares)) * squares", "float64(len(shares)-1) * squares",
		[]string{"rmcat-5.2", "two-tahoe", "two-tahoe-published", "two-fixed", "check-reno-share"},
	},
	{
		"fence-narrow", "the fence is a packet narrower", "internal/rcp/socket.go",
		"s.out.una+uint64(s.router.cfg.Width))", "s.out.una+uint64(s.router.cfg.Width)-1)", fencePresets,
	},
	{
		"fence-blind", "the fence does not report packets after a gap", "internal/rcp/socket.go",
		"s.in.fill(r.bitmap)\n", "clear(r.bitmap)\n", fencePresets,
	},
	{
		"fence-tick", "the fence sends every other tick", "internal/rcp/loop.go",
		"r.next.Add(r.cfg.Tick)", "r.next.Add(2 * r.cfg.Tick)", fencePresets,
	},
	{
		"echo-hasty", "the echo's writer pauses a millisecond less", "internal/sim/workload/echo_config.go",
		"return c.MinPause + ", "return c.MinPause/2 + ",
		[]string{"fence", "fence-phase"},
	},
	{
		"fence-timer-off", "the fence's timer does not double", "internal/rcp/timer.go",
		"min(2*d, t.limit)", "min(d/8, t.limit)",
		[]string{"fence-timer"},
	},
	{
		"rdt-cost", "an RDT packet costs half", "internal/sim/workload/objects_rdt.go",
		"now.Add(max(0, e.cost))", "now.Add(max(0, e.cost/2))", objectPresets,
	},
	{
		"read-cost", "a client's read costs half", "internal/sim/workload/objects_tcp.go",
		"now.Add(i.cfg.ReadCost)", "now.Add(i.cfg.ReadCost / 2)",
		[]string{"rdt-baseline"},
	},
	{
		"rdt-timeout", "RDT retransmits after 20 s", "internal/rdt/config.go",
		"c.Timeout = cmp.Or(c.Timeout, time.Second)", "c.Timeout = cmp.Or(c.Timeout, 20*time.Second)",
		[]string{"rdt-loss"},
	},
	{
		"rdt-drops-ahead", "RDT's receiver drops packets after a gap", "internal/rdt/receiver.go",
		"ahead >= int32(r.cfg.Window)", "ahead > 0", objectPresets,
	},
	{
		"rdt-window", "RDT has half of its window", "internal/rdt/sender.go",
		"s.flight.len() == s.cfg.Window", "s.flight.len() == s.cfg.Window/2", objectPresets,
	},
	{
		"rdt-deaf", "RDT ignores duplicate acknowledgments", "internal/rdt/acknowledge.go",
		"if s.duplicates < s.cfg.Duplicates {", "if true {", append([]string{"rdt-loss", "rdt-corrupt"}, objectPresets...),
	},
	{
		"rdt-in-order", "RDT sends interleaved objects in order", "internal/rdt/schedule.go",
		"if s.interleave {", "if false {",
		[]string{"hol-20"},
	},
	{
		"rdt-echo", "RDT counts each echo as a duplicate", "internal/rdt/acknowledge.go",
		"case ahead > 0:\n", "case ahead > 1:\n", objectPresets,
	},
	{
		"rdt-turns", "RDT interleaves objects without being asked", "internal/rdt/schedule.go",
		"if s.interleave {", "if true {",
		[]string{"hol-20"},
	},
	{
		"rdt-turns-half", "an interleaved RDT packet carries half the data", "internal/rdt/schedule.go",
		"k.size = uint32(min(s.payload, len(object)-c.at))",
		"k.size = uint32(min(s.payload, len(object)-c.at))\n\t\tif s.interleave {\n\t\t\tk.size = (k.size + 1) / 2\n\t\t}",
		[]string{"hol-20"},
	},
	{
		"rdt-early-end", "an RDT object counts as complete when its end arrives", "internal/rdt/object.go",
		"case o.sized && o.got == o.size:", "case o.sized:",
		[]string{"rdt-reorder", "rdt-delay"},
	},
	{
		"go-back-n", "go-back-N retransmits one segment", "internal/tcp/recovery/gbn.go",
		"for l := &v.Record.lists[inFlight]; l.n > 0; {", "if l := &v.Record.lists[inFlight]; l.n > 0 {",
		[]string{"fixed-1000", "two-fixed"},
	},
	{
		"notebook-rtt", "the notebook's sender counts half a round trip", "internal/sim/workload/notebook_strategy.go",
		"l.LastRTT = now - a.SentAt", "l.LastRTT = (now - a.SentAt) / 2", publishedPresets,
	},
	{
		"notebook-window", "the notebook's window is a tenth", "internal/sim/workload/notebook_strategy.go",
		"l.SeqNum-l.NextAck < l.Cwnd", "l.SeqNum-l.NextAck < l.Cwnd/10", publishedPresets,
	},
	{
		"notebook-held", "the notebook's receiver walks its list in no time", "internal/sim/workload/notebook_receiver.go",
		"time.Duration(1+len(r.peer.window)) * r.cfg.HeldCost", "0", publishedPresets,
	},
	{
		"notebook-go", "the notebook's receiver acknowledges its highest packet", "internal/sim/workload/notebook_receiver.go",
		"return p.window[p.contiguous], true", "return p.window[p.top], true", publishedPresets,
	},
}
