package repl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Limits of perf, as in iperf3.
const (
	mostPerfSeconds = 86400
	mostPerfOmit    = 600
	mostPerfStreams = 128
	mostPerfBurst   = 1000
)

type perfFlags struct {
	client, proto, rate, bytes, blocks, length, window, algo, format string
	server, daemon, oneOff, end, udp, reverse, bidir, noDelay, asDoc bool
	seconds, omit, interval                                          float64
	port, parallel, mss, tos                                         int
}

func perfCommand(e *env) *cobra.Command {
	var o perfFlags
	c := &cobra.Command{
		Use:   "perf [ADDR]",
		Args:  argumentCount,
		Short: "measure throughput, like iperf3",
		Long: "Measure the throughput to a server at ADDR, like iperf3 and with its options,\n" +
			"or run a server with -s. An iperf3 behind a TUN device can be either end. Retr\n" +
			"counts retransmitted segments, Cwnd is the congestion window, and jitter the\n" +
			"variation of the one-way delay.\n\n" +
			"`perf -s` serves until Ctrl-C; with -D it serves in the background, and --end\n" +
			"stops it. --proto rcp and rdt work between two tidepool nodes.",
		ValidArgsFunction: at(e.neighborAddrs),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				if o.client != "" {
					return wrong(c, "ADDR %q and -c cannot be used together", args[0])
				}
				o.client = args[0]
			}
			return runPerf(e, c, &o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.client, "client", "c", "", "connect to the server at `ADDR`")
	f.BoolVarP(&o.server, "server", "s", false, "run a server")
	f.BoolVarP(&o.daemon, "daemon", "D", false, "with -s: run in the background")
	f.BoolVarP(&o.oneOff, "one-off", "1", false, "with -s: stop after one test")
	f.BoolVar(&o.end, "end", false, "stop the server in the background")
	f.IntVarP(&o.port, "port", "p", control.PerfPort, "connect to, or serve at, `PORT`")
	f.BoolVarP(&o.udp, "udp", "u", false, "use UDP")
	f.StringVar(&o.proto, "proto", "tcp", "use `PROTO`: tcp, udp, rcp or rdt")
	f.StringVarP(&o.rate, "bitrate", "b", "", "send at most `BITS[KMG][/N]` a second in each\n"+
		"stream, in bursts of N blocks; 0: no limit (default 1M for UDP)")
	f.Float64VarP(&o.seconds, "time", "t", 10, "measure for `SECONDS`")
	f.StringVarP(&o.bytes, "bytes", "n", "", "stop after `BYTES[KMG]` instead of a time")
	f.StringVarP(&o.blocks, "blockcount", "k", "", "stop after `N[KMG]` blocks")
	f.StringVarP(&o.length, "length", "l", "", "write blocks of `BYTES[KMG]` (128K; UDP: a packet)")
	f.IntVarP(&o.parallel, "parallel", "P", 1, "open `N` parallel streams")
	f.BoolVarP(&o.reverse, "reverse", "R", false, "the server sends")
	f.BoolVar(&o.bidir, "bidir", false, "both ends send")
	f.StringVarP(&o.window, "window", "w", "", "use socket buffers of `BYTES[KMG]`")
	f.StringVarP(&o.algo, "congestion", "C", "", "use the congestion control `ALGO` at both ends")
	f.IntVarP(&o.mss, "set-mss", "M", 0, "set the maximum segment size to `BYTES`")
	f.BoolVarP(&o.noDelay, "no-delay", "N", false, "disable Nagle's algorithm")
	f.IntVarP(&o.tos, "tos", "S", 0, "set the `TOS` byte")
	f.Float64VarP(&o.omit, "omit", "O", 0, "do not count the first `SECONDS`")
	f.Float64VarP(&o.interval, "interval", "i", 1, "report every `SECONDS`; 0: only at the end")
	f.StringVarP(&o.format, "format", "f", "", "print rates in `UNIT`: k, m, g, t for bits,\n"+
		"K, M, G, T for bytes")
	f.BoolVarP(&o.asDoc, "iperf-json", "J", false, "the same as --json")
	familyFlags(f)
	flagWords(c, "client", e.neighborAddrs)
	flagWords(c, "proto", words("tcp", "udp", "rcp", "rdt"))
	flagWords(c, "congestion", words("cubic", "bbr", "bbr3", "reno", "newreno", "tahoe"))
	flagWords(c, "format", words("k", "m", "g", "t", "K", "M", "G", "T"))
	return e.streamFlag(e.jsonFlag(c))
}

// runPerf runs the client or the server, or lists the servers.
func runPerf(e *env, c *cobra.Command, o *perfFlags) error {
	if o.asDoc {
		if err := c.Flags().Set("json", "true"); err != nil {
			return wrong(c, "%w", err)
		}
	}
	switch {
	case o.port < 1 || o.port > 65535:
		return wrong(c, "-p %d: must be a port from 1 to 65535", o.port)
	case o.server && o.client != "":
		return wrong(c, "-s and ADDR cannot be used together")
	case o.end:
		return e.done(c, control.Order(c.Context(), e.op, control.PerfClose{Port: uint16(o.port)}))
	case o.server:
		return perfServer(e, c, o)
	case o.client != "":
		return perfClient(e, c, o)
	}
	return show(e, c, control.PerfServers{}, printPerfServers)
}

func perfClient(e *env, c *cobra.Command, o *perfFlags) error {
	req, err := o.request(e, c)
	if err != nil {
		return err
	}
	asJSON, _ := c.Flags().GetBool("json")
	show := &perfText{format: o.format}
	switch {
	case streams(c):
		req.Start = func(r control.PerfStart) { _ = e.line("start", r) } // plain values
		req.Interval = func(r control.PerfInterval) { _ = e.line("interval", r) }
	case !asJSON:
		e.screen.data(fmt.Sprintf("Connecting to host %s, port %d", req.Addr, o.port))
		req.Start = func(r control.PerfStart) { e.screen.data(show.begin(&r)) }
		req.Interval = func(r control.PerfInterval) { e.screen.data(show.interval(&r)) }
	}
	report, err := control.Ask(c.Context(), e.op, *req)
	switch {
	case err != nil && streams(c):
		_ = e.line("error", err.Error()) // plain values
	case err != nil && asJSON:
		_ = e.document(perfFailure(err))
	case err != nil:
	case streams(c):
		err = e.line("end", report.End)
	case asJSON:
		err = e.document(report)
	default:
		e.screen.data(show.end(&report))
	}
	if err == nil && report.Error != "" {
		err = errors.New(report.Error)
	}
	if err != nil {
		err = &documented{failed(c, err)}
	}
	return err
}

// perfFailure returns a report with only an error, as in iperf3.
func perfFailure(err error) control.PerfReport {
	return control.PerfReport{
		Start:     control.PerfStart{Connected: []control.PerfConnected{}},
		Intervals: []control.PerfInterval{},
		End:       control.PerfEnd{Streams: []control.PerfStreamEnd{}}, Error: err.Error(),
	}
}

func perfServer(e *env, c *cobra.Command, o *perfFlags) error {
	for _, name := range []string{
		"udp", "proto", "bitrate", "time", "bytes", "blockcount", "length", "parallel", "reverse",
		"bidir", "window", "congestion", "set-mss", "no-delay", "tos", "omit",
	} {
		if c.Flags().Changed(name) {
			return wrong(c, "--%s is for clients: use it without -s", name)
		}
	}
	req := control.PerfServe{Port: uint16(o.port), Background: o.daemon, OneOff: o.oneOff}
	asJSON, _ := c.Flags().GetBool("json")
	show := &perfText{format: o.format, server: true}
	switch {
	case o.daemon:
	case streams(c):
		req.Start = func(r control.PerfStart) { _ = e.line("start", r) } // plain values
		req.Interval = func(r control.PerfInterval) { _ = e.line("interval", r) }
		req.Ended = func(r control.PerfEnded) { _ = e.line("end", r) }
	case asJSON:
		req.Ended = func(r control.PerfEnded) { _ = e.document(r.Report) }
	default:
		req.Listening = func(r control.PerfServed) { e.screen.data(show.listening(o.port)) }
		req.Start = func(r control.PerfStart) { e.screen.data(show.begin(&r)) }
		req.Interval = func(r control.PerfInterval) { e.screen.data(show.interval(&r)) }
		req.Ended = func(r control.PerfEnded) {
			if r.Problem != "" {
				e.screen.talk("perf: error - " + printable(r.Problem))
			} else {
				e.screen.data(show.end(&r.Report))
			}
			if !o.oneOff {
				e.screen.data(show.listening(o.port))
			}
		}
	}
	served, err := control.Ask(c.Context(), e.op, req)
	if err != nil || !o.daemon {
		return failed(c, err)
	}
	return e.answer(c, served, fmt.Sprintf("Server listening on %d", o.port))
}

func (o *perfFlags) request(e *env, c *cobra.Command) (*control.Perf, error) {
	addr, err := e.host(c, o.client)
	if err != nil {
		return nil, err
	}
	set := c.Flags().Changed
	if err := o.check(c); err != nil {
		return nil, err
	}
	req := &control.Perf{
		Addr: addr, Port: uint16(o.port), Proto: control.PerfProto(o.proto),
		Omit: inSeconds(o.omit), Every: inSeconds(o.interval), Parallel: o.parallel,
		Reverse: o.reverse, Bidir: o.bidir, Congestion: o.algo, MSS: o.mss, NoDelay: o.noDelay,
		TOS: o.tos,
	}
	if o.interval == 0 {
		req.Every = -1
	}
	if o.udp {
		req.Proto = control.PerfUDP
	}
	if set("time") || o.bytes == "" && o.blocks == "" {
		req.Time = inSeconds(o.seconds)
	}
	for _, size := range []struct {
		flag, text string
		into       func(int64)
	}{
		{"-n", o.bytes, func(v int64) { req.Bytes = v }},
		{"-k", o.blocks, func(v int64) { req.Blocks = v }},
		{"-l", o.length, func(v int64) { req.Length = int(v) }},
		{"-w", o.window, func(v int64) { req.Window = int(v) }},
	} {
		if size.text == "" {
			continue
		}
		v, ok := perfSize(size.text, 1024)
		if !ok || v < 1 {
			return nil, wrong(c, "%s %s: must be a number like 1500, 64K or 10M", size.flag,
				printable(size.text))
		}
		size.into(v)
	}
	return req, o.speed(c, req)
}

func (o *perfFlags) check(c *cobra.Command) error {
	set := c.Flags().Changed
	switch {
	case o.seconds < 1 || o.seconds > mostPerfSeconds || o.seconds != math.Trunc(o.seconds):
		return wrong(c, "-t %v: must be 1 to %d whole seconds", o.seconds, mostPerfSeconds)
	case !(o.omit >= 0 && o.omit <= mostPerfOmit) || o.omit != math.Trunc(o.omit):
		return wrong(c, "-O %v: must be 0 to %d whole seconds", o.omit, mostPerfOmit)
	case o.interval != 0 && !(o.interval >= 0.1 && o.interval <= 60):
		return wrong(c, "-i %v: must be 0.1 to 60 seconds, or 0", o.interval)
	case o.parallel < 1 || o.parallel > mostPerfStreams:
		return wrong(c, "-P %d: must be 1 to %d streams", o.parallel, mostPerfStreams)
	case o.tos < 0 || o.tos > 255:
		return wrong(c, "-S %d: must be 0 to 255", o.tos)
	case o.mss < 0 || o.mss == 0 && set("set-mss"):
		return wrong(c, "-M %d: must be 1 byte or more", o.mss)
	case o.reverse && o.bidir:
		return wrong(c, "-R and --bidir cannot be used together")
	case o.daemon || o.oneOff:
		return wrong(c, "-D and -1 need -s")
	case o.udp && set("proto"):
		return wrong(c, "-u and --proto cannot be used together")
	case !slices.Contains([]string{"tcp", "udp", "rcp", "rdt"}, o.proto):
		return wrong(c, "--proto %s: must be tcp, udp, rcp or rdt", printable(o.proto))
	case o.format != "" && (len(o.format) != 1 || !strings.Contains("kmgtKMGT", o.format)):
		return wrong(c, "-f %s: must be k, m, g, t, K, M, G or T", printable(o.format))
	}
	n := 0
	for _, name := range []string{"time", "bytes", "blockcount"} {
		if set(name) {
			n++
		}
	}
	if n > 1 {
		return wrong(c, "-t, -n and -k cannot be used together")
	}
	return nil
}

func (o *perfFlags) speed(c *cobra.Command, req *control.Perf) error {
	if o.rate == "" {
		return nil
	}
	rate, burst, bursts := strings.Cut(o.rate, "/")
	v, ok := perfSize(rate, 1000)
	if !ok {
		return wrong(c, "-b %s: must be bits a second like 500K, 10M or 1G", printable(o.rate))
	}
	if req.Rate = v; v == 0 {
		req.Rate = control.PerfUnlimited
	}
	if bursts {
		n, err := strconv.Atoi(burst)
		if err != nil || n < 1 || n > mostPerfBurst {
			return wrong(c, "-b %s: must have 1 to %d blocks after the /", printable(o.rate),
				mostPerfBurst)
		}
		req.Burst = n
	}
	return nil
}

// perfSize parses a number with a unit.
func perfSize(text string, base float64) (int64, bool) {
	factor := 1.0
	if i := strings.IndexAny(text, "kKmMgGtT"); i >= 0 && i == len(text)-1 {
		factor = math.Pow(base, float64(strings.IndexByte("kmgt", text[i]|0x20)+1))
		text = text[:i]
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) || v*factor > 1<<62 {
		return 0, false
	}
	return int64(v * factor), true
}

func printPerfServers(list []control.PerfServed) string {
	columns := []column{{"Local", 15, leftmost}, {"Tests", 5, 2}, {"State", 7, 2}}
	var rows [][]string
	for _, p := range list {
		state := "waiting"
		if p.Busy {
			state = "busy"
		}
		rows = append(rows, []string{p.Local.String(), strconv.Itoa(p.Tests), state})
	}
	return table(columns, rows)
}
