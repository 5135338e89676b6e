package repl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func rdtCommand(e *env) *cobra.Command {
	return overUDP[control.RDTFlow](e, &transport[control.RDTFlow]{
		name: "rdt", short: "use RDT: many objects in one UDP flow",
		long: "RDT transfers objects over one UDP flow, with selective repeat and without\n" +
			"congestion control; it comes from document 003 (see README.md). `rdt serve PORT\n" +
			"PATH...` serves files, `rdt list ADDR PORT` lists them, and `rdt fetch ADDR\n" +
			"PORT` fetches all or some of them. `rdt` alone lists servers and flows. For each\n" +
			"flow it prints the packets sent, retransmitted and not acknowledged yet, and the\n" +
			"valid packets received. `rdt close PORT` closes the flows of a port.",
		list: control.RDTFlows{}, print: printRDT,
		port: func(f *control.RDTFlow) uint16 { return f.Local.Port() },
		end: func(port uint16) control.Request[control.Nothing] {
			return control.RDTClose{Port: port}
		},
	}, rdtServeCommand(e), rdtListCommand(e), rdtFetchCommand(e))
}

// These are the limits of the flags, and the default of --patience.
const (
	mostRDTWindow   = 1 << 15
	mostRDTPayload  = 65455
	mostRDTTimeout  = 1800
	defaultPatience = 10
)

func rdtServerFlags(c *cobra.Command, o *control.RDTOptions) {
	f := c.Flags()
	f.IntVar(&o.Window, "window", 128, "send at most `PACKETS` without an acknowledgment")
	f.IntVar(&o.Payload, "payload", 1325, "send `BYTES` of payload in each packet")
	secondsVar(f, &o.Timeout, "timeout", "", 0,
		"retransmit after `SECONDS`; 0: adapt to the round-trip time")
	f.BoolVar(&o.Cumulative, "cumulative", false, "use only cumulative acknowledgments")
	f.BoolVar(&o.Compress, "compress", false, "compress packets if that makes them shorter")
	f.BoolVar(&o.Interleave, "interleave", false, "interleave objects, packet by packet")
	Limit(c, 1, mostRDTWindow, "window")
	Limit(c, 1, mostRDTPayload, "payload")
	limitOrZero(c, 0.001, mostRDTTimeout, "timeout")
	rdtFlags(c, o)
}

func rdtClientFlags(c *cobra.Command, o *control.RDTOptions) {
	c.Flags().StringVar(&o.Checksum, "checksum", "md5", "use packet checksum `NAME`: md5 or crc32c")
	Choose(c, "checksum", "md5", "crc32c")
	rdtFlags(c, o)
}

func rdtFlags(c *cobra.Command, o *control.RDTOptions) {
	secondsVar(c.Flags(), &o.Patience, "patience", "", defaultPatience,
		"close a flow after `SECONDS` of silence")
	Limit(c, 0.1, mostSeconds, "patience")
}

// atLeastArgs checks that a command has at least the given number of arguments.
func atLeastArgs(least int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		_, list := cut(c.Use)
		if names := strings.Fields(list); len(args) < least {
			return wrong(c, "%s is missing", strings.TrimSuffix(names[len(args)], "..."))
		}
		return argumentSyntax(c, args)
	}
}

func rdtServeCommand(e *env) *cobra.Command {
	var req control.RDTServe
	c := &cobra.Command{
		Use:   "serve PORT PATH...",
		Short: "serve files, and those of folders",
		Long: "Serve files on a UDP port with their current content. The name of a file is\n" +
			"the last part of its path; files of a folder, and of its subfolders, are named\n" +
			"by their path from there. When a flow ends, the shell prints its counters.\n" +
			"The sender does not pace its packets, so the receive buffer must hold a whole\n" +
			"window: 128 packets (174 kB) fit; packets that do not fit are retransmitted.\n" +
			"Document 003 uses --window 1120 --timeout 1 --cumulative; with --cumulative, the\n" +
			"sender detects a loss by three equal acknowledgments or by the timeout.",
		Args: atLeastArgs(2),

		ValidArgsFunction: func(
			c *cobra.Command, args []string, prefix string,
		) ([]cobra.Completion, cobra.ShellCompDirective) {
			return at(append(make([]completer, max(1, len(args))), fileNames)...)(c, args, prefix)
		},
		RunE: func(c *cobra.Command, args []string) error {
			req.Port, req.Paths = portOf(args[0]), args[1:]
			return show(e, c, req, func(at control.RDTServed) string {
				return fmt.Sprintf("Serving %d objects, %d bytes, by RDT on UDP "+
					"port %d", at.Objects, at.Bytes, at.Local.Port())
			})
		},
	}
	rdtServerFlags(c, &req.Options)
	return e.jsonFlag(c)
}

func rdtListCommand(e *env) *cobra.Command {
	var req control.RDTList
	c := &cobra.Command{
		Use:   "list ADDR PORT",
		Short: "list the objects of a server",
		Args:  positional,

		ValidArgsFunction: at(e.neighborAddrs),
		RunE: func(c *cobra.Command, args []string) error {
			req.Addr, req.Port = addrOf(args[0]), portOf(args[1])
			return show(e, c, req, printEntries)
		},
	}
	rdtClientFlags(c, &req.Options)
	return e.jsonFlag(c)
}

var errMissing = errors.New("not received")

func rdtFetchCommand(e *env) *cobra.Command {
	var req control.RDTFetch
	c := &cobra.Command{
		Use:   "fetch ADDR PORT [NAME...] [into DIR]",
		Short: "fetch objects from a server",
		Long: "Fetch objects from a server: those with these NAMEs, in this order, or all. With\n" +
			"`into DIR` each complete object is stored in DIR, which is created if it does\n" +
			"not exist. An existing file is kept unless --force is given. Without `into`,\n" +
			"objects are compared with the server's SHA-256 and discarded. The command\n" +
			"fails if an object fails. Ctrl-C keeps the objects that are stored.",
		Args: atLeastArgs(2),

		ValidArgsFunction: at(e.neighborAddrs),
		RunE: func(c *cobra.Command, args []string) error {
			req.Addr, req.Port, req.Names = addrOf(args[0]), portOf(args[1]), args[2:]
			if i := len(args) - 2; i >= 2 && args[i] == "into" {
				req.Names, req.Dir = args[2:i], args[i+1]
			} else if args[len(args)-1] == "into" {
				return wrong(c, "DIR is missing")
			}
			return fetchObjects(e, c, req)
		},
	}
	rdtClientFlags(c, &req.Options)
	c.Flags().BoolVar(&req.Overwrite, "force", false, "replace existing files")
	return e.jsonFlag(c)
}

// fetchObjects fetches objects with a progress bar, and prints the result.
func fetchObjects(e *env, c *cobra.Command, req control.RDTFetch) error {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	advance, end := e.track(fmt.Sprintf("rdt %v:%d", req.Addr, req.Port), cancel)
	defer end()
	req.Progress = advance
	got, err := control.Ask(ctx, e.op, req)
	if err != nil {
		return failed(c, err)
	}
	if err := e.answer(c, got, printFetched(&got)); err != nil {
		return err
	}
	failures := 0
	for i := range got.Objects {
		if got.Objects[i].Problem != "" {
			failures++
		}
	}
	if failures > 0 {
		err := fmt.Errorf("%d of %d objects %w", failures, len(got.Objects), errMissing)
		return &jsonError{failed(c, err)}
	}
	return nil
}

func printRDT(list []control.RDTFlow) string {
	const head = "<Local          |         Remote|    State|  Objects|     Bytes|  Sent|" +
		"  Retrans|  Received|  In flight"
	return table(head, list, func(f *control.RDTFlow) []string {
		row := []string{
			f.Local.String(), f.Remote.String(), f.State, strconv.Itoa(f.Objects),
			strconv.FormatInt(f.Bytes, 10), number(f.Sent), number(f.Again), number(f.Received),
			strconv.Itoa(f.InFlight),
		}
		if f.State == "serving" {
			row = append([]string{row[0], "-"}, append(row[2:5:5], "-", "-", "-", "-")...)
		}
		return row
	})
}

func printEntries(list []control.RDTEntry) string {
	return table("     Bytes|  SHA-256|  Name", list, func(e *control.RDTEntry) []string {
		return []string{strconv.FormatInt(e.Bytes, 10), e.SHA256, printable(e.Name)}
	})
}

// printFetched formats one line for each object, and the totals.
func printFetched(r *control.RDTFetched) string {
	var b strings.Builder
	b.WriteString(table("     Bytes|     From|       To|  Name|  SHA-256", r.Objects,
		func(o *control.RDTObject) []string {
			verdict := o.SHA256
			if o.Problem != "" {
				verdict = printable(o.Problem)
			}
			return []string{
				strconv.FormatInt(o.Bytes, 10), seconds(o.Began), seconds(o.Done),
				printable(o.Name), verdict,
			}
		}))
	rate := 0.0
	if r.Seconds > 0 {
		rate = float64(r.Bytes) / 1e6 / r.Seconds
	}
	fmt.Fprintf(&b, "Received %d total bytes (%d objects) in %s, %.2f MB/s\n",
		r.Bytes, len(r.Objects), took(r.Seconds), rate)
	fmt.Fprintf(&b, "  %d packets, %d duplicates, %d corrupted; "+
		"%d acknowledgments, %d requests\n", r.Received, r.Twice, r.Damaged, r.Acks, r.Requests)
	if r.Made != "" {
		fmt.Fprintf(&b, "  created the directory %s\n", printable(r.Made))
	}
	return b.String()
}

func seconds(s float64) string {
	if s == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f s", s)
}
