package repl

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// These are the limits of iperf3.
const (
	mostPerfSeconds = 86400
	mostPerfOmit    = 600
	mostPerfStreams = 128
	mostPerfBurst   = 1000
)

type perfFlags struct {
	req                                     control.Perf
	client, format                          string
	server, daemon, oneOff, end, udp, asDoc bool
	port                                    int
}

func perfCommand(e *env) *cobra.Command {
	var o perfFlags
	c := &cobra.Command{
		Use:   "perf [ADDR]",
		Args:  argumentCount,
		Short: "measure throughput, like iperf3",
		Long: "Measure the throughput to a server at ADDR, like iperf3 and with many of its\n" +
			"options, or run a server with -s. An iperf3 behind a TUN device can be either\n" +
			"end. Retr counts retransmitted segments, Cwnd is the congestion window, and\n" +
			"jitter is the variation of the one-way delay.\n\n" +
			"`perf -s` serves until Ctrl-C; with -D it serves in the background, and --end\n" +
			"stops it. --proto rcp and --proto rdt work only between two tidepool nodes.",
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
	f, req := c.Flags(), &o.req
	f.StringVarP(&o.client, "client", "c", "", "connect to the server at `ADDR`")
	f.BoolVarP(&o.server, "server", "s", false, "run a server")
	f.BoolVarP(&o.daemon, "daemon", "D", false, "with -s: run in the background")
	f.BoolVarP(&o.oneOff, "one-off", "1", false, "with -s: stop after one test")
	f.BoolVar(&o.end, "end", false, "stop the server in the background")
	f.IntVarP(&o.port, "port", "p", control.PerfPort, "connect to, or serve at, `PORT`")
	f.BoolVarP(&o.udp, "udp", "u", false, "use UDP")
	f.StringVar((*string)(&req.Proto), "proto", "tcp", "use `PROTO`: tcp, udp, rcp or rdt")
	f.FuncP("bitrate", "b", "send at most `BITS[KMG][/N]` a second in each\n"+
		"stream, in bursts of N blocks; 0: no limit (default 1M for UDP)", o.setRate)
	secondsVar(f, &req.Time, "time", "t", 10, "measure for `SECONDS`")
	f.FuncP("bytes", "n", "stop after `BYTES[KMG]` instead of a time", perfSize(&req.Bytes))
	f.FuncP("blockcount", "k", "stop after `N[KMG]` blocks", perfSize(&req.Blocks))
	f.FuncP("length", "l", "write blocks of `BYTES[KMG]` (default 128K;\n"+
		"UDP: the MSS of the path; RCP: 16K)", perfSize(&req.Length))
	f.IntVarP(&req.Parallel, "parallel", "P", 1, "open `N` parallel streams")
	f.BoolVarP(&req.Reverse, "reverse", "R", false, "the server sends")
	f.BoolVar(&req.Bidir, "bidir", false, "both ends send")
	f.FuncP("window", "w", "use socket buffers of `BYTES[KMG]`", perfSize(&req.Window))
	f.StringVarP(&req.Congestion, "congestion", "C", "",
		"use the congestion control `ALGO` at both ends")
	f.IntVarP(&req.MSS, "set-mss", "M", 0, "set the maximum segment size to `BYTES`")
	f.BoolVarP(&req.NoDelay, "no-delay", "N", false, "disable Nagle's algorithm")
	f.IntVarP(&req.TOS, "tos", "S", 0, "set the `TOS` byte of packets")
	secondsVar(f, &req.Omit, "omit", "O", 0, "do not count the first `SECONDS`")
	secondsVar(f, &req.Every, "interval", "i", 1, "report every `SECONDS`; 0: only at the end")
	f.StringVarP(&o.format, "format", "f", "", "print rates in `UNIT`: k, m, g, t for bits,\n"+
		"K, M, G, T for bytes")
	f.BoolVarP(&o.asDoc, "iperf-json", "J", false, "the same as --json")
	familyFlags(f)
	flagWords(c, "client", e.neighborAddrs)
	Choose(c, "proto", "tcp", "udp", "rcp", "rdt")
	flagWords(c, "congestion", e.algorithms)
	Choose(c, "format", "k", "m", "g", "t", "K", "M", "G", "T")
	Limit(c, 1, 65535, "port")
	limitWhole(c, 1, mostPerfSeconds, "time")
	limitWhole(c, 0, mostPerfOmit, "omit")
	Limit(c, 1, mostPerfStreams, "parallel")
	Limit(c, 0, 255, "tos")
	Limit(c, 1, Unlimited, "set-mss")
	limitOrZero(c, 0.1, 60, "interval")
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
	show := &perfText{format: o.format}
	switch {
	case streams(c):
		req.Start = func(r control.PerfStart) { _ = e.line("start", r) } // the type always encodes
		req.Interval = func(r control.PerfInterval) { _ = e.line("interval", r) }
	case !e.json(c):
		e.screen.data(fmt.Sprintf("Connecting to host %s, port %d", req.Addr, o.port))
		req.Start = func(r control.PerfStart) { e.screen.data(show.begin(&r)) }
		req.Interval = func(r control.PerfInterval) { e.screen.data(show.interval(&r)) }
	}
	report, err := control.Ask(c.Context(), e.op, *req)
	switch {
	case err != nil && streams(c):
		_ = e.line("error", err.Error()) // the type always encodes
	case err != nil && e.json(c):
		_ = e.document(perfFailure(err))
	case err != nil:
	case streams(c):
		err = e.line("end", report.End)
	case e.json(c):
		err = e.document(report)
	default:
		e.screen.data(show.end(&report))
	}
	if err == nil && report.Error != "" {
		err = errors.New(report.Error)
	}
	if err != nil {
		err = &jsonError{failed(c, err)}
	}
	return err
}

// perfFailure returns a report that contains only an error, as iperf3 does.
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
	show := &perfText{format: o.format, server: true}
	switch {
	case o.daemon:
	case streams(c):
		req.Start = func(r control.PerfStart) { _ = e.line("start", r) } // the type always encodes
		req.Interval = func(r control.PerfInterval) { _ = e.line("interval", r) }
		req.Ended = func(r control.PerfEnded) { _ = e.line("end", r) }
	case e.json(c):
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
	if err := o.check(c); err != nil {
		return nil, err
	}
	set := c.Flags().Changed
	req := o.req
	req.Addr, req.Port = addr, uint16(o.port)
	if req.Every == 0 {
		req.Every = -1
	}
	if o.udp {
		req.Proto = control.PerfUDP
	}
	if !set("time") && (set("bytes") || set("blockcount")) {
		req.Time = 0
	}
	return &req, nil
}

func (o *perfFlags) check(c *cobra.Command) error {
	set := c.Flags().Changed
	switch {
	case o.req.Reverse && o.req.Bidir:
		return wrong(c, "-R and --bidir cannot be used together")
	case o.daemon || o.oneOff:
		return wrong(c, "-D and -1 need -s")
	case o.udp && set("proto"):
		return wrong(c, "-u and --proto cannot be used together")
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

func (o *perfFlags) setRate(text string) error {
	rate, burst, bursts := strings.Cut(text, "/")
	v, ok := perfNumber(rate, 1000)
	if !ok {
		return ValueError("bits a second like 500K, 10M or 1G")
	}
	if o.req.Rate = v; v == 0 {
		o.req.Rate = control.PerfUnlimited
	}
	if bursts {
		n, err := strconv.Atoi(burst)
		if err != nil || n < 1 || n > mostPerfBurst {
			return ValueError(fmt.Sprintf("a rate with 1 to %d blocks after the /", mostPerfBurst))
		}
		o.req.Burst = n
	}
	return nil
}

// perfSize returns a function that parses a number of bytes or blocks into at.
func perfSize[T int | int64](at *T) func(text string) error {
	return func(text string) error {
		v, ok := perfNumber(text, 1024)
		if !ok || v < 1 {
			return ValueError("a number like 1500, 64K or 10M")
		}
		*at = T(v)
		return nil
	}
}

func perfNumber(text string, base float64) (int64, bool) {
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
	return table("<Local          |  Tests|  State", list, func(p *control.PerfServed) []string {
		state := "waiting"
		if p.Busy {
			state = "busy"
		}
		return []string{p.Local.String(), strconv.Itoa(p.Tests), state}
	})
}
