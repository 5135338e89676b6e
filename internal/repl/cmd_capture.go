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

// captureFlags are the flags of `capture`.
type captureFlags struct {
	file    string
	snaplen int
	count   uint64
	size    float64
	files   int
	force   bool
}

const aboutCapture = `Capture the packets of an interface, or of all, in both directions, including
dropped packets. Without -w it prints a line for each, until Ctrl-C. With -w it
writes a pcapng file: from a shell in the background, until "capture stop"; with
"node ctl" until Ctrl-C. "-w -" is standard output:

  node ctl A capture all -w - | wireshark -k -i -

The comment of a packet in the file says why it was dropped, and shows the state
and windows of its connection. All captures of a node share a buffer of 64 MB. If
readers are too slow, the oldest packets are dropped; the file counts them at the
next packet (frame.drop_count) and at its end.

FILTER is a subset of pcap-filter(7):
  [src|dst] host ADDR   [src|dst] net NET/LEN   [tcp|udp] [src|dst] port N
  [tcp|udp] portrange N-N   ip ip6 tcp udp icmp icmp6 rip test   [ip|ip6] proto N
  less N   greater N
  syn fin rst psh ack urg ece cwr, also tcp[syn] and tcp[tcpflags] & tcp-syn != 0
  in out   ifname NAME   drop (dropped packets)   not and or ( )
Offsets other than tcp[tcpflags], host names and link layers are not supported.`

func captureCommand(e *env) *cobra.Command {
	var o captureFlags
	c := &cobra.Command{
		Use:               "capture [IF|all] [FILTER...]",
		Short:             "print or record packets; stop; list",
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
			req, err := captureRequest(e, c, &o, args)
			if err != nil {
				return err
			}
			switch {
			case o.file == "-":
				return captureOut(e, c, req)
			case o.file == "":
				return captureLines(e, c, req)
			case e.single():
				return captureFile(e, c, req)
			}
			return captureBeside(e, c, req)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.file, "write", "w", "", "write pcapng to `FILE`; - is standard output")
	f.IntVarP(&o.snaplen, "snaplen", "s", 0, "keep `BYTES` of a packet; 0: all")
	f.Uint64VarP(&o.count, "count", "c", 0, "stop after `N` packets")
	f.Float64VarP(&o.size, "file-size", "C", 0, "start a new file after `MB`")
	f.BoolVar(&o.force, "force", false, "replace existing captures with the names of -w")
	f.IntVarP(&o.files, "files", "W", 0, "keep the last `N` files of -C")
	flagWords(c, "write", fileNames)
	return e.jsonFlag(c)
}

// nearFace matches words that look like the name of an interface and are not part of a filter. The
// node's error lists its interfaces.
var nearFace = regexp.MustCompile(`^(if[0-9]+|tun.*)$`)

// captureRequest builds a request from a capture's flags and arguments.
func captureRequest(e *env,
	c *cobra.Command, o *captureFlags, args []string,
) (*control.Record, error) {
	switch {
	case o.snaplen < 0 || o.snaplen > 65535:
		return nil, wrong(c, "-s %d: must be 0 to 65535 bytes", o.snaplen)
	case o.size < 0 || o.size > 1<<40:
		return nil, wrong(c, "-C %v: must be a number of megabytes", o.size)
	case o.files < 0:
		return nil, wrong(c, "-W %d: must be a number of files", o.files)
	case (o.size > 0 || o.files > 0) && (o.file == "" || o.file == "-"):
		return nil, wrong(c, "-C and -W need -w FILE")
	case o.files > 0 && o.size == 0:
		return nil, wrong(c, "-W needs -C")
	}
	req := &control.Record{
		Snaplen: o.snaplen, Count: o.count, FileSize: int64(o.size * 1e6), Files: o.files,
		Overwrite: o.force,
	}
	if o.file != "-" {
		req.File = o.file
	}
	if len(args) > 0 {
		faces, err := control.Ask(c.Context(), e.op, control.Interfaces{})
		if err != nil {
			return nil, failed(c, err)
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
	return req, nil
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
			_ = e.line("packet", p) // plain values
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

func captureBeside(e *env, c *cobra.Command, req *control.Record) error {
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
	columns := []column{
		{"ID", 3, leftmost}, {"Kind", 9, 2}, {"Packets", 9, 2}, {"Missed", 8, 2}, {"Since", 10, 2},
	}
	rows := make([][]string, 0, len(list))
	for _, o := range list {
		id := "-"
		if o.ID > 0 {
			id = strconv.Itoa(o.ID)
		}
		rows = append(rows, []string{
			id, o.Kind, strconv.FormatUint(o.Packets, 10), strconv.FormatUint(o.Missed, 10),
			o.Since.Format(time.TimeOnly),
		})
	}
	lines := strings.Split(table(columns, rows), "\n")
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
