package repl

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidepool-net/tidepool/internal/control"
)

type statusError struct {
	error
	status int
}

func (e *statusError) Unwrap() error { return e.error }

// These are the limits of iputils' ping.
const (
	mostPingSize  = 65507
	leastInterval = 0.002
	mostPreload   = 65536
	mostPattern   = 16
)

// scriptPings is how many requests a ping without a count sends in a script.
const scriptPings = 4

type pingFlags struct {
	req                    control.Ping
	name                   string // the name that the user typed for the address
	quiet, stamps, numeric bool
}

func pingCommand(e *env) *cobra.Command {
	var o pingFlags
	c := &cobra.Command{
		Use:   "ping ADDR",
		Args:  argumentCount,
		Short: "send echo requests until Ctrl-C",
		Long: "Send ICMP echo requests and print the replies, like iputils's ping, until\n" +
			"Ctrl-C or the limits of -c and -w. In a script, or as a command of `node ctl`,\n" +
			"it sends 4 requests by default. The exit status is 1 if no reply came or, with\n" +
			"both -c and -w, fewer than -c N. It is 2 if nothing could be sent.",
		ValidArgsFunction: at(e.neighborAddrs),
		RunE: func(c *cobra.Command, args []string) error {
			req, err := o.request(e, c, args[0])
			if err != nil {
				return err
			}
			if req.Count == 0 && req.Deadline == 0 && e.script() {
				req.Count = scriptPings
			}
			return runPing(e, c, &o, req)
		},
	}
	f, req := c.Flags(), &o.req
	f.IntVarP(&req.Count, "count", "c", 0, "stop after `N` requests (default: run until Ctrl-C)")
	secondsVar(f, &req.Interval, "interval", "i", 1, "wait `SECONDS` between requests")
	f.IntVarP(&req.Size, "size", "s", 56, "send `BYTES` of data in each request")
	f.IntVarP(&req.TTL, "ttl", "t", 64, "set the `TTL` of requests, 1 to 255")
	secondsVar(f, &req.Timeout, "timeout", "W", 10, "wait `SECONDS` for the first reply")
	secondsVar(f, &req.Deadline, "deadline", "w", 0, "stop after `SECONDS`, or at an ICMP error")
	f.StringVarP(&req.Source, "source", "I", "", "send from `ADDR`, or from an interface")
	f.FuncP("pattern", "p", "fill packets with `HEX` digits, up to 16 bytes", o.setPattern)
	f.StringVarP(&req.Fragment, "pmtudisc", "M", "dont",
		"set DF as `HOW` says: do sets it, dont does not,\nwant sets it if the packet fits the MTU")
	f.IntVarP(&req.Preload, "preload", "l", 1, "send `N` requests before waiting for replies")
	f.IntVarP(&req.TOS, "tos", "Q", 0, "set the `TOS` byte of requests")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print only the statistics")
	f.BoolVarP(&req.Flood, "flood", "f", false,
		"send as fast as replies come, at least 100 a second")
	f.BoolVarP(&req.Adaptive, "adaptive", "A", false, "send at the rate of replies, at most 500/s")
	f.BoolVarP(&req.Broadcast, "broadcast", "b", false, "allow a broadcast address")
	f.BoolVarP(&o.stamps, "timestamps", "D", false, "print the time at the start of each line")
	f.BoolVarP(&req.Outstanding, "outstanding", "O", false, "report requests without a reply")
	f.BoolVarP(&o.numeric, "numeric", "n", false, "does nothing: addresses are always numeric")
	familyFlags(f)
	flagWords(c, "source", e.interfaceNames)
	Choose(c, "pmtudisc", "do", "dont", "want")
	Limit(c, 1, Unlimited, "count")
	Limit(c, 0, mostPingSize, "size")
	Limit(c, 1, 255, "ttl")
	Limit(c, 0, 255, "tos")
	Limit(c, 1, mostPreload, "preload")
	Limit(c, leastInterval, mostSeconds, "interval")
	Limit(c, positive, mostSeconds, "timeout", "deadline")
	return e.streamFlag(e.jsonFlag(c))
}

func (o *pingFlags) request(e *env, c *cobra.Command, addr string) (*control.Ping, error) {
	to, err := e.host(c, addr)
	req := o.req
	req.Addr, o.name = to, addr
	if req.Size == 0 {
		req.Size = -1 // send no data, not the default amount
	}
	return &req, err
}

func (o *pingFlags) setPattern(digits string) error {
	if n := len(digits); n%2 == 1 {
		digits = digits[:n-1] + "0" + digits[n-1:] // a single digit stands for a whole byte
	}
	fill, err := hex.DecodeString(digits)
	if err != nil || len(fill) > mostPattern {
		return ValueError(fmt.Sprintf("hex digits, two a byte, up to %d bytes", mostPattern))
	}
	o.req.Pattern = fill
	return nil
}

// familyFlags adds the flags that require an address of a given family.
func familyFlags(f *pflag.FlagSet) {
	f.BoolP("ipv4", "4", false, "ADDR must be an IPv4 address")
	f.BoolP("ipv6", "6", false, "ADDR must be an IPv6 address")
}

func runPing(e *env, c *cobra.Command, o *pingFlags, req *control.Ping) error {
	switch {
	case streams(c):
		req.Each = func(r control.Reply) { _ = e.line("each", r) } // the type always encodes
	case !e.json(c):
		from, err := sourceName(e, c, req)
		if err != nil {
			return err
		}
		watchPing(e, o, req, pingBanner(req, o.name, from))
	}
	problem := ""
	if each := req.Each; each != nil {
		req.Each = func(r control.Reply) {
			problem = cmp.Or(r.Problem, problem)
			each(r)
		}
	}
	result, err := control.Ask(c.Context(), e.op, *req)
	e.screen.setStatus("")
	if err != nil {
		return pingFailed(c, err)
	}
	if err := e.answer(c, result, printPing(req, o.name, &result)); err != nil {
		return err
	}
	short := result.Received == 0 || req.Deadline > 0 && result.Received < req.Count
	if short && result.Sent > 0 && c.Context().Err() == nil {
		return &jsonError{tooFew(e, c, req, &result, problem)}
	}
	return nil
}

// tooFew returns the error of a ping with fewer replies than requested. The error contains the last
// problem, and its exit status is 1. The statistics have already been printed.
func tooFew(e *env,
	c *cobra.Command, req *control.Ping, result *control.PingResult, problem string,
) error {
	why := "no reply"
	switch {
	case result.Received > 0:
		why = fmt.Sprintf("%d replies, fewer than %d", result.Received, req.Count)
	case problem != "":
		why = printable(problem)
	case result.Errors > 0:
		why += ", but " + counted(uint64(result.Errors), "error")
	}
	err := failed(c, fmt.Errorf("%s: %s", req.Addr, why))
	if e.interactive() {
		return &printedError{err} // the printed statistics show it
	}
	return err
}

// pingFailed returns the error of a ping that could not start. Its exit status is 2.
func pingFailed(c *cobra.Command, err error) error {
	if errors.Is(err, control.ErrUsage) {
		return &usageError{cause: failed(c, err), use: useLine(c)}
	}
	text := err
	if errors.Is(err, control.ErrNoRoute) {
		text = fmt.Errorf("connect: Network is unreachable (%w; `routes` lists the routes)", err)
	}
	return &statusError{error: failed(c, text), status: 2}
}

// sourceName formats the source for the first line: an address, and the interface if the user named
// it.
func sourceName(e *env, c *cobra.Command, req *control.Ping) (string, error) {
	source := req.Source
	if source == "" {
		return "", nil
	}
	list, err := control.Ask(c.Context(), e.op, control.Interfaces{})
	if err != nil {
		return "", failed(c, err)
	}
	var own []string
	for _, i := range list {
		named := source == i.Name || source == fmt.Sprint(i.Index)
		var all []string
		for _, p := range i.Addrs() {
			a := p.Addr()
			near := a.IsLinkLocalUnicast() == (req.Addr.IsLinkLocalUnicast() ||
				req.Addr.IsMulticast())
			switch {
			case named && a.Is4() == req.Addr.Is4() && (a.Is4() || near):
				return a.String() + " " + i.Name, nil
			case source == a.String(), source == a.WithZone(i.Name).String():
				return source + " ", nil
			}
			all = append(all, a.String())
		}
		own = append(own, i.Name+" ("+strings.Join(all, ", ")+")")
		if named {
			return "", wrong(c, "-I %s: no address for packets to %v; this node has %s",
				printable(source), req.Addr, strings.Join(own, ", "))
		}
	}
	return "", wrong(c, "-I %s: no such interface or address; this node has %s", printable(source),
		strings.Join(own, ", "))
}

func pingBanner(req *control.Ping, name, from string) string {
	text := ""
	if req.Broadcast {
		text = "WARNING: pinging broadcast address\n"
	}
	if len(req.Pattern) > 0 {
		text += fmt.Sprintf("PATTERN: 0x%x\n", req.Pattern)
	}
	text += fmt.Sprintf("PING %s (%s) ", name, req.Addr)
	if from != "" {
		text += "from " + from + ": "
	}
	headers := 28
	if req.Addr.Is6() {
		headers = 48
	}
	return text + fmt.Sprintf("%d(%d) bytes of data.", req.Bytes(), req.Bytes()+headers)
}

// watchPing sets the callbacks that print replies as the flags require. On a terminal, a flood ping
// prints a dot for each request without a reply.
func watchPing(e *env, o *pingFlags, req *control.Ping, banner string) {
	dots := o.req.Flood && e.width() > 0
	req.Outstanding = req.Outstanding || dots // needed to print the dots
	answered := 0
	req.Begun = func() { e.screen.data(banner) }
	req.Each = func(r control.Reply) {
		if r.Problem == "" && !r.Late && !r.Duplicate {
			answered++
		}
		switch {
		case dots:
			missing := max(0, min(r.Seq-answered%65536, e.width()-1))
			e.screen.setStatus(strings.Repeat(".", missing))
		case o.quiet || o.req.Flood:
		case r.Local:
			e.screen.talk("ping: " + printable(r.Problem))
		default:
			e.screen.data(printReply(&r, req.Bytes(), o.stamps))
		}
	}
}

func printReply(r *control.Reply, size int, stamps bool) string {
	stamp := ""
	if stamps {
		stamp = fmt.Sprintf("[%d.%06d] ", r.At.Unix(), r.At.Nanosecond()/1000)
	}
	switch {
	case r.Late:
		return fmt.Sprintf("%sno answer yet for icmp_seq=%d", stamp, r.Seq)
	case r.Problem != "":
		return fmt.Sprintf("%sFrom %s icmp_seq=%d %s", stamp, r.From, r.Seq, printable(r.Problem))
	}
	text := fmt.Sprintf("%s%d bytes from %s: icmp_seq=%d ttl=%d",
		stamp, r.Size, r.From, r.Seq, r.TTL)
	if r.Size < size+8 {
		return text + " (truncated)"
	}
	text += " time=" + pingMillis(r.RTT) + " ms"
	for _, remark := range []struct {
		holds bool
		text  string
	}{
		{r.Duplicate, " (DUP!)"},
		{r.Damaged, " (BAD CHECKSUM!)"},
		{r.Elsewhere, " (DIFFERENT ADDRESS!)"},
	} {
		if remark.holds {
			text += remark.text
		}
	}
	if r.Wrong != nil {
		text += printWrong(r.Wrong)
	}
	return text
}

// printWrong formats wrong payload data: the first wrong byte, and then all bytes in rows.
func printWrong(w *control.WrongData) string {
	var b strings.Builder
	got := byte(0)
	if w.At < len(w.Data) {
		got = w.Data[w.At]
	}
	fmt.Fprintf(&b, "\nwrong data byte #%d should be 0x%x but was 0x%x", w.At, w.Want, got)
	const row = 32
	for i := range w.Data {
		if i%row == 0 {
			fmt.Fprintf(&b, "\n#%d\t", i)
		}
		fmt.Fprintf(&b, "%x ", w.Data[i])
	}
	return b.String()
}

// pingMillis formats a round-trip time with three significant digits, like iputils.
func pingMillis(d time.Duration) string {
	us := d.Microseconds()
	switch {
	case us >= 100_000-50:
		return fmt.Sprintf("%d", (us+500)/1000)
	case us >= 10_000-5:
		return fmt.Sprintf("%d.%01d", (us+50)/1000, (us+50)%1000/100)
	case us >= 1000:
		return fmt.Sprintf("%d.%02d", (us+5)/1000, (us+5)%1000/10)
	}
	return fmt.Sprintf("%d.%03d", us/1000, us%1000)
}

func printPing(req *control.Ping, name string, p *control.PingResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n--- %s ping statistics ---\n%d packets transmitted, %d received",
		name, p.Sent, p.Received)
	for _, count := range []struct {
		n    int
		name string
	}{{p.Duplicates, "duplicates"}, {p.Corrupted, "corrupted"}, {p.Errors, "errors"}} {
		if count.n > 0 {
			fmt.Fprintf(&b, ", +%d %s", count.n, count.name)
		}
	}
	if p.Sent > 0 {
		loss := float32(100 * float64(p.Sent-p.Received) / float64(p.Sent))
		fmt.Fprintf(&b, ", %.6g%% packet loss, time %dms", loss,
			p.Elapsed.Round(time.Millisecond).Milliseconds())
	}
	b.WriteString("\n")
	var parts []string
	if p.Received > 0 {
		parts = append(parts, fmt.Sprintf("rtt min/avg/max/mdev = %s/%s/%s/%s ms",
			pingExact(p.Min), pingExact(p.Avg), pingExact(p.Max), pingExact(p.Mdev)))
	}
	if p.Pipe > 1 {
		parts = append(parts, fmt.Sprintf("pipe %d", p.Pipe))
	}
	if p.Received > 0 && p.Sent > 1 && (req.Flood || req.Adaptive) {
		parts = append(parts, fmt.Sprintf("ipg/ewma %s/%s ms",
			pingExact(p.Elapsed/time.Duration(p.Sent-1)), pingExact(p.EWMA)))
	}
	b.WriteString(strings.Join(parts, ", ") + "\n")
	return b.String()
}

func pingExact(d time.Duration) string {
	us := d.Microseconds()
	return fmt.Sprintf("%d.%03d", us/1000, us%1000)
}
