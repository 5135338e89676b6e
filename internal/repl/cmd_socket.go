package repl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

type socketFlags struct {
	info, timers, tcp, udp, listening, noHeader bool
	numeric, all                                bool // accepted but without effect
}

func (o *socketFlags) keeps(k control.Socket) bool {
	udp := isUDP(k)
	if o.tcp != o.udp && udp != o.udp {
		return false
	}
	return !o.listening || k.State == "LISTEN" || udp && k.Remote.Port() == 0
}

func socketsCommand(e *env) *cobra.Command {
	var o socketFlags
	c := &cobra.Command{
		Use:   "sockets",
		Short: "list the sockets, like ss; -i: details",
		Long: "List the sockets, like `ss -tuan`. For each connection, -i adds the fields of\n" +
			"`ss -i`, and what limits the connection and for how long: app (the application\n" +
			"has written no more), cwnd, rwnd, sndbuf, pacing, nagle, cork, persist, recovery\n" +
			"or idle. -o adds the timer that is running, and how often it has expired.\n" +
			"\n" +
			"Other commands take the number in the column sid. A connection in SYN-RECV has\n" +
			"no number: a client has sent a SYN to a listener, and nothing else yet. Lines\n" +
			"with \"program\" are sockets of programs that `node in` runs as this host; only\n" +
			"info and trace accept their numbers. `ls` prints the course's table.",
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := listSockets(e, c, &o)
			if err != nil {
				return failed(c, err)
			}
			return e.answer(c, list, fieldSockets(list, &o))
		},
	}
	f := c.Flags()
	o.infoFlag(c)
	f.BoolVarP(&o.timers, "options", "o", false,
		"add the timer, its time left, and how often it expired")
	f.BoolVarP(&o.tcp, "tcp", "t", false, "list only TCP sockets")
	f.BoolVarP(&o.udp, "udp", "u", false, "list only UDP sockets")
	f.BoolVarP(&o.listening, "listening", "l", false, "list only listening sockets")
	f.BoolVarP(&o.noHeader, "no-header", "H", false, "omit the header")
	f.BoolVarP(&o.all, "all", "a", false, "does nothing: listening sockets are always shown")
	f.BoolVarP(&o.numeric, "numeric", "n", false,
		"does nothing: addresses and ports are always numeric")
	return e.jsonFlag(c)
}

func (o *socketFlags) infoFlag(c *cobra.Command) {
	c.Flags().BoolVarP(&o.info, "info", "i", false, "add RTT, windows, counters, limiting factor")
}

func listSockets(e *env, c *cobra.Command, o *socketFlags) ([]control.Socket, error) {
	list, err := control.Ask(c.Context(), e.op, control.Sockets{Info: o.info, Timers: o.timers})
	return slices.DeleteFunc(list, func(k control.Socket) bool { return !o.keeps(k) }), err
}

// courseSockets returns the command `ls`: the course's table of the sockets with a number.
func courseSockets(e *env) *cobra.Command {
	var o socketFlags
	c := &cobra.Command{
		Use:   "ls",
		Short: "list sockets, as the course prints them",
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := listSockets(e, c, &o)
			if err != nil {
				return failed(c, err)
			}
			list = slices.DeleteFunc(list, func(k control.Socket) bool {
				return k.SID < 0 || k.Program
			})
			return e.answer(c, list, printSockets(list))
		},
	}
	o.infoFlag(c)
	return e.jsonFlag(c)
}

func acceptCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:     "accept PORT",
		Aliases: []string{"a"},
		Short:   "listen, and accept all connections",
		RunE: func(c *cobra.Command, args []string) error {
			req := control.Listen{Port: portOf(args[0])}
			return show(e, c, req, func(sock control.Socket) string {
				return fmt.Sprintf("Created listen socket with ID %d", sock.SID)
			})
		},
	})
}

func connectCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:     "connect ADDR PORT",
		Aliases: []string{"c"},
		Short:   "open a TCP connection",
		RunE: func(c *cobra.Command, args []string) error {
			req := control.Connect{Addr: addrOf(args[0]), Port: portOf(args[1])}
			return show(e, c, req, func(s control.Socket) string {
				return fmt.Sprintf("Created new socket with ID %d", s.SID)
			})
		},
	})
}

// mostRead limits how many bytes one recv can ask for.
const mostRead = 64 << 20

func recvCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:               "recv SID N [y|n]",
		Aliases:           []string{"r"},
		Short:             "read up to N bytes; y: wait for all N",
		ValidArgsFunction: at(e.connections, nil, words("y", "n")),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := parseCount(c, args[1], 1, mostRead)
			if err != nil {
				return err
			}
			if len(args) > 2 && args[2] != "y" && args[2] != "n" {
				return wrong(c, "%q is neither y nor n", args[2])
			}
			full := len(args) > 2 && args[2] == "y"
			req := control.Read{SID: sidOf(args[0]), N: n, Full: full}
			return show(e, c, req, func(d control.Data) string { return printData(e, d) })
		},
	})
}

// shortHow maps the course's letters to directions.
var shortHow = map[string]control.How{"r": control.ShutdownRead, "w": control.ShutdownWrite}

func shutdownCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "shutdown SID [read|write|both]",
		Aliases: []string{"sd"},
		Short:   "close one direction; default: write",
		Long: "Close one direction of a connection (default: write), or both. r is short for\n" +
			"read, and w for write.",
		ValidArgsFunction: at(e.connections, words("read", "write", "both")),
		RunE: func(c *cobra.Command, args []string) error {
			how := control.ShutdownWrite
			if len(args) > 1 {
				how = cmp.Or(shortHow[args[1]], control.How(args[1]))
			}
			switch how {
			case control.ShutdownRead, control.ShutdownWrite, control.ShutdownBoth:
			default:
				return wrong(c, "%q: must be read, write or both", args[1])
			}
			req := control.Shutdown{SID: sidOf(args[0]), How: how}
			return e.done(c, control.Order(c.Context(), e.op, req))
		},
	}
}

func closeCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:               "close SID",
		Aliases:           []string{"cl"},
		Short:             "close a socket; pending data is sent",
		ValidArgsFunction: at(e.everySocket),
		RunE: func(c *cobra.Command, args []string) error {
			req := control.Close{SID: sidOf(args[0])}
			return e.done(c, control.Order(c.Context(), e.op, req))
		},
	}
}

func windowCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:               "window SID",
		Short:             "print a connection's windows",
		ValidArgsFunction: at(e.connections),
		RunE: func(c *cobra.Command, args []string) error {
			req := control.Window{SID: sidOf(args[0])}
			return show(e, c, req, func(w control.Windows) string {
				return fmt.Sprintf("send window %d, receive window %d", w.Send, w.Receive)
			})
		},
	})
}

// congestionKey is the setting whose values are the congestion controls.
const congestionKey = "tcp.congestion"

func congestionCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:     "cc SID NAME",
		Aliases: []string{"sc", "scc"},
		Short:   "change a connection's congestion control",
		Long: "Change a connection's congestion control to NAME, one of the values of this\n" +
			"setting:",
		Annotations:       map[string]string{settingsAbout: congestionKey},
		ValidArgsFunction: at(e.connections, e.algorithms),
		RunE: func(c *cobra.Command, args []string) error {
			req := control.Congestion{SID: sidOf(args[0]), Name: args[1]}
			return show(e, c, req, func(sock control.Socket) string {
				return fmt.Sprintf("socket %d uses %s", sock.SID, args[1])
			})
		},
	})
}

// writeAll writes n bytes by repeating piece. Ctrl-C stops it between two pieces.
func writeAll(ctx context.Context, e *env, sid int, piece []byte, n int64) error {
	for n > 0 {
		part := piece[:min(n, int64(len(piece)))]
		w, err := control.Ask(ctx, e.op, control.Write{SID: sid, Data: part})
		if err != nil {
			return err
		}
		n -= int64(w.Bytes)
	}
	return nil
}

// printSockets formats the course's table. If a connection has Info, it also formats the second
// line of ss -ti.
func printSockets(list []control.Socket) string {
	const head = "<SID|      LAddr| LPort|      RAddr| RPort|       Status"
	text := table(head, list, func(s *control.Socket) []string {
		return []string{
			strconv.Itoa(s.SID),
			s.Local.Addr().String(), strconv.Itoa(int(s.Local.Port())),
			s.Remote.Addr().String(), strconv.Itoa(int(s.Remote.Port())),
			s.State,
		}
	})
	lines := strings.SplitAfter(text, "\n")
	var b strings.Builder
	b.WriteString(lines[0])
	for i, s := range list {
		b.WriteString(lines[i+1])
		if s.Info != nil {
			b.WriteString("\t " + printInfo(s.Info) + "\n")
		}
	}
	return b.String()
}

type fields []string

func (f *fields) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// count adds a number, unless it is zero. The program ss omits zeros, too.
func (f *fields) count(name string, n uint64) {
	if n > 0 {
		f.add("%s:%d", name, n)
	}
}

// waited adds a duration and its share of the total, unless the duration is below 1 ms.
func (f *fields) waited(name string, d, of time.Duration) {
	switch {
	case d < time.Millisecond:
	case of <= 0:
		f.add("%s:%dms", name, d.Milliseconds())
	default:
		f.add("%s:%dms(%.1f%%)", name, d.Milliseconds(), 100*float64(d)/float64(of))
	}
}

// printInfo formats a connection's internal state with the names and units of ss: times in
// milliseconds, cwnd and ssthresh in segments. Fields that ss does not have follow at the end.
func printInfo(i *control.Info) string {
	var f fields
	for _, o := range []struct {
		on   bool
		name string
	}{{i.Timestamps, "ts"}, {i.SACK, "sack"}, {i.ECN, "ecn"}} {
		if o.on {
			f.add("%s", o.name)
		}
	}
	f.add("%s", i.CongestionControl)
	f.path(i)
	f.traffic(i)
	f.outstanding(i)
	f.add("snd_wnd:%d rcv_wnd:%d", i.SndWnd, i.RcvWnd)
	f.count("rtos", i.TotalRTO)
	f.count("tlps", i.TailProbes)
	f.count("probes", i.WindowProbes)
	f.count("undone", i.Undone)
	if i.Strategy != "" {
		f.add("recovery:%s", i.Strategy)
	}
	if i.CAState != "" {
		f.add("state:%s", i.CAState)
	}
	if i.Limited != "" {
		f.add("limited:%s", i.Limited)
	}
	if i.LimitedFor > 0 { // the kernel reports no such time for its own connections
		f.add("since:%sms", millis(i.LimitedFor))
	}
	return strings.Join(f, " ")
}

// path adds the properties of the path and the windows.
func (f *fields) path(i *control.Info) {
	if i.SndWScale >= 0 {
		f.add("wscale:%d,%d", i.SndWScale, i.RcvWScale)
	}
	f.add("rto:%s", millis(i.RTO))
	f.count("backoff", uint64(max(0, i.Backoff)))
	if i.RTT > 0 {
		f.add("rtt:%s/%s", millis(i.RTT), millis(i.RTTVar))
	}
	if i.ATO > 0 {
		f.add("ato:%s", millis(i.ATO))
	}
	f.add("mss:%d pmtu:%d", i.SndMSS, i.PMTU)
	f.count("rcvmss", uint64(max(0, i.RcvMSS)))
	f.count("advmss", uint64(max(0, i.AdvMSS)))
	f.add("cwnd:%d", segments(i.SndCwnd, i.SndMSS))
	if i.SndSsthresh > 0 {
		f.add("ssthresh:%d", segments(i.SndSsthresh, i.SndMSS))
	}
}

func (f *fields) traffic(i *control.Info) {
	f.count("bytes_sent", i.BytesSent)
	f.count("bytes_retrans", i.BytesRetrans)
	f.count("bytes_acked", i.BytesAcked)
	f.count("bytes_received", i.BytesReceived)
	f.count("segs_out", i.SegsOut)
	f.count("segs_in", i.SegsIn)
	f.count("data_segs_out", i.DataSegsOut)
	f.count("data_segs_in", i.DataSegsIn)
	if i.RTT > 0 {
		f.add("send %sbps", strconv.FormatFloat(float64(i.SndCwnd)*8/i.RTT.Seconds(), 'f', 0, 64))
	}
	f.add("lastsnd:%d lastrcv:%d lastack:%d", i.LastDataSent.Milliseconds(),
		i.LastDataRecv.Milliseconds(), i.LastAckRecv.Milliseconds())
	if i.PacingRate > 0 {
		f.add("pacing_rate %dbps", i.PacingRate)
	}
	if i.DeliveryRate > 0 {
		f.add("delivery_rate %dbps", i.DeliveryRate)
	}
	f.count("delivered", i.Delivered)
	if i.DeliveryRateAppLimited {
		f.add("app_limited")
	}
}

func (f *fields) outstanding(i *control.Info) {
	f.waited("busy", i.BusyTime, 0)
	f.waited("rwnd_limited", i.RwndLimited, i.BusyTime)
	f.waited("sndbuf_limited", i.SndbufLimited, i.BusyTime)
	f.count("unacked", uint64(max(0, i.Unacked)))
	if i.TotalRetrans > 0 {
		f.add("retrans:%d/%d", i.Retrans, i.TotalRetrans)
	}
	f.count("lost", uint64(max(0, i.Lost)))
	f.count("sacked", uint64(max(0, i.Sacked)))
	f.count("dsack_dups", i.DSACKDups)
	f.count("reord_seen", i.ReordSeen)
	if i.RcvRTT > 0 {
		f.add("rcv_rtt:%s", millis(i.RcvRTT))
	}
	f.count("rcv_space", uint64(max(0, i.RcvSpace)))
	f.count("rcv_ssthresh", uint64(max(0, i.RcvBuf)))
	f.count("notsent", uint64(max(0, i.NotSentBytes)))
	if i.MinRTT > 0 {
		f.add("minrtt:%s", millis(i.MinRTT))
	}
	f.count("rcv_ooopack", i.RcvOOOPack)
}

func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Round(time.Microsecond).Microseconds())/1000, 'f', -1, 64)
}

func segments(bytes, mss int) int {
	if mss <= 0 {
		return bytes
	}
	return bytes / mss
}

// printData formats received data. On a terminal it escapes control characters.
func printData(e *env, d control.Data) string {
	text := string(d.Bytes)
	if e.interactive() {
		text = printable(text)
	}
	switch {
	case len(d.Bytes) > 0:
		return fmt.Sprintf("Read %d bytes: %s", len(d.Bytes), text)
	case d.EOF:
		return "Read 0 bytes: the peer has closed"
	default:
		return "Read 0 bytes"
	}
}
