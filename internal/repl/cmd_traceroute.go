package repl

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// These are the limits and the default packet lengths of the program traceroute.
const (
	mostHops     = 255
	mostQueries  = 10
	mostParallel = 255
	mostTraceLen = 65000
	traceLen     = 60
	traceLen6    = 80
)

type traceFlags struct {
	req                control.Traceroute
	icmp, tcp, numeric bool
}

func tracerouteCommand(e *env) *cobra.Command {
	var o traceFlags
	c := &cobra.Command{
		Use:     "traceroute ADDR [BYTES]",
		Args:    argumentCount,
		Aliases: []string{"tracert"},
		Short:   "list the routers on the path to ADDR",
		Long: "Find the routers on the path to ADDR, with packets of BYTES (60, or 80 for\n" +
			"IPv6) and increasing TTL. A star marks a probe without an answer. Marks after a\n" +
			"time: !H, !N and !P for an unreachable host, network or protocol, !X for\n" +
			"forbidden traffic, !S for a failed source route, and !F-576 if the packet may\n" +
			"not be fragmented (DF) and the next link has an MTU of 576 bytes.",
		ValidArgsFunction: at(e.neighborAddrs),
		RunE: func(c *cobra.Command, args []string) error {
			req, err := o.request(e, c, args)
			if err != nil {
				return err
			}
			return runTraceroute(e, c, req, args[0], o.numeric)
		},
	}
	f, req := c.Flags(), &o.req
	f.IntVarP(&req.First, "first", "f", 1, "start with the TTL `N`")
	f.IntVarP(&req.MaxHops, "max-hops", "m", 30, "stop after the TTL `N`")
	f.IntVarP(&req.Queries, "queries", "q", 3, "send `N` probes for each hop, up to 10")
	f.IntVarP(&req.Parallel, "sim-queries", "N", 16, "keep `N` probes in flight")
	f.VarP(&value{"5,3,10", "string", o.setWaits}, "wait", "w",
		"wait MAX seconds (`MAX[,HERE,NEAR]`), at most\n"+
			"HERE times as long as another reply of this hop took,\n"+
			"or NEAR times one of a later hop")
	f.FuncP("sendwait", "z", "wait `T` between probes: seconds if T is at most 10,\n"+
		"otherwise milliseconds", o.setGap)
	f.IntVarP(&req.Port, "port", "p", 0, "send the first UDP probe to `PORT` (33434), or all\n"+
		"TCP probes (80); with -I, the first sequence number (1)")
	f.BoolVarP(&o.icmp, "icmp", "I", false, "probe by ICMP echo requests")
	f.BoolVarP(&o.tcp, "tcp", "T", false, "probe by TCP SYNs")
	f.BoolVarP(&req.DontFragment, "dont-fragment", "F", false, "forbid fragmentation: set DF")
	f.BoolVar(&req.PathMTU, "mtu", false, "discover the path MTU: F=576 marks where it shrinks")
	f.StringVarP(&req.Source, "source", "s", "", "send from `ADDR`")
	f.StringVarP(&req.Source, "interface", "i", "", "send from the interface `IF`")
	f.IntVarP(&req.TOS, "tos", "t", 0, "set the `TOS` byte of probes")
	f.BoolVarP(&o.numeric, "numeric", "n", false, "print each address once")
	familyFlags(f)
	flagWords(c, "interface", e.interfaceNames)
	Limit(c, 1, mostHops, "first", "max-hops")
	Limit(c, 1, mostQueries, "queries")
	Limit(c, 1, mostParallel, "sim-queries")
	Limit(c, 1, 65535, "port")
	Limit(c, 0, 255, "tos")
	return e.streamFlag(e.jsonFlag(c))
}

func (o *traceFlags) request(
	e *env, c *cobra.Command, args []string,
) (*control.Traceroute, error) {
	addr, err := e.host(c, args[0])
	if err != nil {
		return nil, err
	}
	req := o.req
	req.Addr, req.Size = addr, traceLen
	switch {
	case o.req.PathMTU:
		req.Size = mostTraceLen
	case addr.Is6():
		req.Size = traceLen6
	}
	if len(args) > 1 {
		if req.Size, err = parseCount(c, args[1], 1, mostTraceLen); err != nil {
			return nil, err
		}
	}
	set := c.Flags().Changed
	switch {
	case o.req.First > o.req.MaxHops:
		return nil, wrong(c, "-f %d: must be 1 to %d (-m)", o.req.First, o.req.MaxHops)
	case o.req.PathMTU && o.tcp:
		return nil, wrong(c, "--mtu and -T cannot be used together")
	case o.icmp && o.tcp:
		return nil, wrong(c, "-I and -T cannot be used together")
	case set("source") && set("interface"):
		return nil, wrong(c, "-s and -i cannot be used together")
	case o.icmp:
		req.Kind = control.ProbeICMP
	case o.tcp:
		req.Kind = control.ProbeTCP
	}
	return &req, nil
}

// setWaits parses -w: the maximum wait, and two factors relative to the times of other replies.
func (o *traceFlags) setWaits(text string) error {
	var n [3]float64
	words := strings.Split(text, ",")
	if len(words) > len(n) {
		return ValueError("MAX[,HERE,NEAR]")
	}
	for i, word := range words {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil || !(v >= 0 && v <= mostSeconds) || i == 0 && v == 0 {
			return ValueError("numbers MAX[,HERE,NEAR], MAX > 0")
		}
		n[i] = v
		if v == 0 {
			n[i] = -1 // this limit is disabled
		}
	}
	o.req.Wait, o.req.Here, o.req.Near = inSeconds(n[0]), n[1], n[2]
	return nil
}

func (o *traceFlags) setGap(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= mostSeconds) {
		return ValueError("seconds (at most 10) or milliseconds (above 10)")
	}
	if v > 10 {
		v /= 1000
	}
	o.req.Gap = inSeconds(v)
	return nil
}

func runTraceroute(
	e *env, c *cobra.Command, req *control.Traceroute, name string, numeric bool,
) error {
	switch {
	case streams(c):
		req.Each = func(h control.Hop) { _ = e.line("each", h) } // the type always encodes
	case !e.json(c):
		e.screen.data(fmt.Sprintf("traceroute to %s (%s), %d hops max, %d byte packets",
			name, req.Addr, req.MaxHops, req.Size))
		req.Each = func(h control.Hop) { e.screen.data(printHop(h, numeric)) }
	}
	hops, err := control.Ask(c.Context(), e.op, *req)
	switch {
	case errors.Is(err, control.ErrUsage):
		return &usageError{cause: failed(c, err), use: useLine(c)}
	case errors.Is(err, control.ErrNoRoute):
		return failed(c, fmt.Errorf("connect: Network is unreachable (%w; `routes` lists routes)",
			err))
	case err != nil:
		return failed(c, err)
	}
	return e.answer(c, hops, "")
}

func printHop(h control.Hop, numeric bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%2d ", h.TTL)
	var last netip.Addr
	for _, r := range h.Replies {
		if !r.From.IsValid() {
			b.WriteString(" *")
			continue
		}
		if r.From != last {
			last = r.From
			fmt.Fprintf(&b, " %s", r.From)
			if !numeric {
				fmt.Fprintf(&b, " (%s)", r.From)
			}
		}
		fmt.Fprintf(&b, "  %.3f ms", float64(r.RTT.Nanoseconds())/1e6)
		if r.PathMTU > 0 {
			fmt.Fprintf(&b, " F=%d", r.PathMTU)
		}
		if r.Mark != "" {
			b.WriteString(" " + printable(r.Mark))
		}
	}
	return b.String()
}
