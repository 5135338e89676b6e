package repl

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

const aboutCapture = `Capture the packets of an interface, or of all, in both directions, including
dropped packets. Without -w it prints a line for each packet, until Ctrl-C. With
-w it writes a pcapng file. In a shell, such a capture runs in the background:
"capture stop" stops it, and "capture list" lists all captures. With "node ctl"
it runs until Ctrl-C. "-w -" is standard output:

  node ctl A capture all -w - | wireshark -k -i -

The comment of a packet in the file says why it was dropped, and shows the state
and windows of its connection. All captures of a node share a buffer of 64 MB.
If readers are too slow, the oldest packets are dropped; the file counts them at
the next packet (frame.drop_count) and at its end.

FILTER is a subset of pcap-filter(7):
  [src|dst] host ADDR   [src|dst] net NET/LEN   [tcp|udp] [src|dst] port N
  [tcp|udp] portrange N-N   ip ip6 tcp udp icmp icmp6 rip test   [ip|ip6] proto N
  less N   greater N
  syn fin rst psh ack urg ece cwr, also tcp[syn] and tcp[tcpflags] & tcp-syn != 0
  in out   ifname NAME   drop (dropped packets)   not and or ( )
Offsets other than tcp[tcpflags], host names and link layers are not supported.`

func captureCommand(e *env) *cobra.Command {
	var req control.Record
	var megabytes float64
	c := &cobra.Command{
		Use:               "capture [IF|all] [FILTER...]",
		Short:             "print or record packets",
		Long:              aboutCapture,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: at(e.captureWords, e.filterWords),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "stop" {
				return stopCapture(e, c, args[1:])
			}
			if len(args) == 1 && args[0] == "list" {
				return listCaptures(e, c)
			}
			req.FileSize = int64(megabytes * 1e6)
			if err := captureWhat(e, c, &req, args); err != nil {
				return err
			}
			switch {
			case req.File == "-":
				return captureOut(e, c, &req)
			case req.File == "":
				return captureLines(e, c, &req)
			case e.single():
				return captureFile(e, c, &req)
			}
			return captureInBackground(e, c, &req)
		},
	}
	f := c.Flags()
	f.StringVarP(&req.File, "write", "w", "", "write pcapng to `FILE`; - is standard output")
	f.IntVarP(&req.Snaplen, "snaplen", "s", 0, "keep the first `BYTES` of each packet; 0: all")
	f.Uint64VarP(&req.Count, "count", "c", 0, "stop after `N` packets")
	f.Float64VarP(&megabytes, "file-size", "C", 0, "start a new file after `MB` megabytes")
	f.BoolVar(&req.Overwrite, "force", false, "overwrite existing files with the names of -w")
	f.IntVarP(&req.Files, "files", "W", 0, "keep the last `N` files of -C")
	flagWords(c, "write", fileNames)
	Limit(c, 0, 65535, "snaplen")
	Limit(c, 0, 1<<40, "file-size")
	Limit(c, 0, Unlimited, "files")
	return e.jsonFlag(c)
}

// nearFace matches words that look like the name of an interface and cannot be part of a filter.
// For such a name the node's error lists its interfaces.
var nearFace = regexp.MustCompile(`^(if[0-9]+|tun.*)$`)

// captureWhat sets the interface and the filter of a capture from its arguments.
func captureWhat(e *env, c *cobra.Command, req *control.Record, args []string) error {
	switch {
	case (req.FileSize > 0 || req.Files > 0) && (req.File == "" || req.File == "-"):
		return wrong(c, "-C and -W need -w FILE")
	case req.Files > 0 && req.FileSize == 0:
		return wrong(c, "-W needs -C")
	}
	if len(args) > 0 {
		faces, err := control.Ask(c.Context(), e.op, control.Interfaces{})
		if err != nil {
			return failed(c, err)
		}
		named := func(i control.Interface) bool {
			return i.Name == args[0] || strconv.Itoa(i.Index) == args[0]
		}
		if args[0] == "all" || args[0] == "lo" || slices.ContainsFunc(faces, named) ||
			nearFace.MatchString(args[0]) {
			req.Iface, args = args[0], args[1:]
		}
	}
	req.Filter = strings.Join(args, " ")
	return nil
}

func captureLines(e *env, c *cobra.Command, req *control.Record) error {
	e.endless()
	asJSON := e.json(c)
	req.Lines = true
	req.Begun = func() {
		if !asJSON {
			e.screen.talk("capturing " + captured(req.Iface, req.Filter) + " until Ctrl-C")
		}
	}
	req.Packet = func(p control.Packet) {
		if asJSON {
			_ = e.line("packet", p) // the type always encodes
			return
		}
		e.screen.data(packetLine(e, &p))
	}
	done, err := ask(e, c, *req)
	if err != nil {
		return err
	}
	if asJSON {
		return e.line("result", done)
	}
	e.screen.talk(printCaptured(&done))
	return nil
}

func captured(iface, filter string) string {
	if iface == "" || iface == "all" {
		iface = "all interfaces"
	}
	if filter == "" {
		return iface
	}
	return iface + ", " + filter
}

func packetLine(e *env, p *control.Packet) string {
	way := "In "
	if p.Sent {
		way = "Out"
	}
	text := p.At.Format("15:04:05.000000") + " " + pad(p.Iface, 4) + " " + way + " " +
		printable(strings.TrimPrefix(p.Text, "IP "))
	if p.Drop == "" {
		return text
	}
	text += "  DROPPED: " + p.Drop
	if e.cfg.Color {
		text = "\x1b[31m" + text + "\x1b[0m"
	}
	return text
}

func printCaptured(d *control.Captured) string {
	text := fmt.Sprintf("%s captured", counted(d.Packets, "packet"))
	if d.File != "" {
		text = fmt.Sprintf("%s in %s", counted(d.Packets, "packet"), printable(d.File))
		if d.Files > 1 {
			text += fmt.Sprintf(", the last of %d files", d.Files)
		}
	}
	if d.Missed > 0 {
		text += fmt.Sprintf("; %d missed: the reader was too slow", d.Missed)
	}
	if d.Problem != "" {
		text += "; " + printable(d.Problem)
	}
	return text
}

func counted(n uint64, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.FormatUint(n, 10) + " " + what
}

func captureOut(e *env, c *cobra.Command, req *control.Record) error {
	if e.interactive() || e.cfg.Color {
		return wrong(c, "a terminal cannot show pcapng: use -w FILE, or "+
			"`node ctl NODE capture ... -w - | wireshark -k -i -`")
	}
	e.endless()
	req.File = "" // the node sends the packets instead
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	req.Piece = func(b []byte) {
		if err := e.screen.raw(b); err != nil {
			cancel(err)
		}
	}
	done, err := control.Ask(ctx, e.op, *req)
	if ctx.Err() != nil && c.Context().Err() == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return failed(c, err)
	}
	e.screen.talk(printCaptured(&done))
	return nil
}

func captureFile(e *env, c *cobra.Command, req *control.Record) error {
	req.Begun = func() {
		e.screen.talk("capturing " + captured(req.Iface, req.Filter) + " to " +
			printable(req.File) + " until Ctrl-C")
	}
	return show(e, c, *req, func(done control.Captured) string { return printCaptured(&done) })
}

func captureInBackground(e *env, c *cobra.Command, req *control.Record) error {
	return show(e, c, control.StartCapture{
		Iface: req.Iface, Filter: req.Filter, Snaplen: req.Snaplen, Count: req.Count,
		File: req.File, FileSize: req.FileSize, Files: req.Files, Overwrite: req.Overwrite,
	}, func(on control.Capturing) string {
		return fmt.Sprintf("capture %d: %s to %s; `capture stop %d` stops it", on.ID,
			captured(on.Iface, on.Filter), printable(on.File), on.ID)
	})
}

func stopCapture(e *env, c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return wrong(c, "unexpected argument: %q", strings.Join(args[1:], " "))
	}
	var req control.StopCapture
	if len(args) == 1 {
		n, err := strconv.ParseUint(args[0], 10, 31)
		if err != nil || n == 0 {
			return wrong(c, "%q is not a capture's number; `capture list` lists them", args[0])
		}
		req.ID = int(n)
	}
	return show(e, c, req, func(done control.Captured) string { return printCaptured(&done) })
}

func listCaptures(e *env, c *cobra.Command) error {
	list, err := ask(e, c, control.Captures{})
	if err != nil {
		return err
	}
	lines := strings.Split(table("<ID |     Kind|  Packets|  Missed|     Since", list,
		func(o *control.Capturing) []string {
			id := "-"
			if o.ID > 0 {
				id = strconv.Itoa(o.ID)
			}
			return []string{
				id, o.Kind, number(o.Packets), number(o.Missed), o.Since.Format(time.TimeOnly),
			}
		}), "\n")
	lines[0] += "  Capture"
	for i, o := range list {
		lines[i+1] += "  " + captured(o.Iface, o.Filter)
		if o.File != "" {
			lines[i+1] += " to " + printable(o.File)
		}
	}
	return e.answer(c, list, strings.Join(lines, "\n"))
}

func (e *env) captureWords(ctx context.Context, prefix string) []string {
	words := append([]string{"all", "stop", "list"}, e.interfaceNames(ctx, prefix)...)
	return append(words, filterNouns...)
}

var filterNouns = []string{
	"host", "net", "port", "portrange", "src", "dst", "tcp", "udp", "icmp", "icmp6", "ip", "ip6",
	"rip", "proto", "not", "less", "greater", "drop", "in", "out", "syn", "fin", "rst",
}

func (e *env) filterWords(context.Context, string) []string { return filterNouns }
