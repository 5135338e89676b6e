package repl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func sendFileCommand(e *env) *cobra.Command {
	var req control.SendFile
	c := &cobra.Command{
		Use:     "sendfile PATH ADDR PORT",
		Aliases: []string{"sf"},
		Short:   "send a file over a new connection",
		Long: "Connect, send the file and close. At the shell it runs in the background: the\n" +
			"prompt returns and shows the progress, and the shell prints the rate and\n" +
			"SHA-256. `transfers` lists the transfers in progress, `cancel N` stops one,\n" +
			"`wait` waits for all. A script waits for its transfers at its end; Ctrl-C stops\n" +
			"the transfer of a script or of `node ctl`.\n" +
			"\n" +
			"--offset skips the first bytes, which `recvfile --resume` already has. Both\n" +
			"ends print the SHA-256 of the whole file. Two tidepool nodes also compare it,\n" +
			"and fail if it differs. For that they exchange a header and a trailer; with\n" +
			"other peers, or with --no-verify, the connection carries only the bytes of the\n" +
			"file.",
		ValidArgsFunction: at(fileNames),
		RunE: func(c *cobra.Command, args []string) error {
			req.Path, req.Addr, req.Port = args[0], addrOf(args[1]), portOf(args[2])
			doing := "to " + args[1] + ":" + args[2]
			return e.background(c, args[0], doing, func(ctx context.Context, tell progress) (
				control.Transfer, error,
			) {
				req.Progress = streamed(e, c, tell)
				return control.Ask(ctx, e.op, req)
			})
		},
	}
	c.Flags().Int64Var(&req.Offset, "offset", 0, "skip the first `BYTES`")
	Limit(c, 0, Unlimited, "offset")
	c.Flags().BoolVar(&req.NoVerify, "no-verify", false, noVerifyUsage)
	return e.streamFlag(e.jsonFlag(c))
}

const noVerifyUsage = "do not compare the SHA-256 of both ends"

// streamed returns tell. With --json-stream, each call of the function also prints a line.
func streamed(e *env, c *cobra.Command, tell progress) progress {
	if !streams(c) {
		return tell
	}
	return func(p control.Progress) {
		_ = e.line("progress", p) // the type always encodes
		tell(p)
	}
}

func recvFileCommand(e *env) *cobra.Command {
	var req control.RecvFile
	c := &cobra.Command{
		Use:     "recvfile PATH PORT",
		Aliases: []string{"rf"},
		Short:   "receive a file over one connection",
		Long: "Listen on PORT, accept one connection and store the received data in PATH. An\n" +
			"existing file is kept unless you give --force. The command runs in the\n" +
			"background like `sendfile`; `cancel N` stops it, where N is the number that\n" +
			"`transfers` shows. Until the file is complete, its data is in PATH.part. After\n" +
			"an interruption, `recvfile --resume` appends to PATH.part what `sendfile\n" +
			"--offset` sends.",
		ValidArgsFunction: at(fileNames),
		RunE: func(c *cobra.Command, args []string) error {
			req.Resume = req.Resume || c.Flags().Changed("offset")
			req.Path, req.Port = args[0], portOf(args[1])
			doing := "waits for a connection on port " + args[1]
			return e.background(c, args[0], doing, func(ctx context.Context, tell progress) (
				control.Transfer, error,
			) {
				req.Progress = streamed(e, c, resuming(e, args[0], tell))
				return control.Ask(ctx, e.op, req)
			})
		},
	}
	f := c.Flags()
	f.BoolVar(&req.Resume, "resume", false, "continue after the bytes in PATH.part")
	f.Int64Var(&req.Offset, "offset", 0, "continue after the file's first `BYTES`")
	f.Int64Var(&req.Size, "size", 0, "expect a file of `BYTES`")
	f.BoolVar(&req.Overwrite, "force", false, "replace PATH and PATH.part")
	f.StringVar(&req.SHA256, "sha256", "", "expect the SHA-256 `HEX`")
	f.BoolVar(&req.NoVerify, "no-verify", false, noVerifyUsage)
	Limit(c, 0, Unlimited, "offset")
	Limit(c, 1, Unlimited, "size")
	check(c, "sha256", "64 hex digits", func(text string) bool {
		digest, err := hex.DecodeString(text)
		return err == nil && len(digest) == sha256.Size
	})
	return e.streamFlag(e.jsonFlag(c))
}

// resuming returns a function that first prints where the sender must continue, then calls tell.
func resuming(e *env, path string, tell progress) progress {
	said := false
	return func(p control.Progress) {
		if !said && p.Offset > 0 {
			e.screen.talk(fmt.Sprintf("recvfile %s continues at byte %d: send with "+
				"`sendfile --offset %d`", printable(path), p.Offset, p.Offset))
		}
		said = true
		tell(p)
	}
}

func transfersCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "transfers",
		Short: "list transfers in progress; `cancel N`",
		Long: "List the transfers in progress in all sessions: sendfile and recvfile in the\n" +
			"background, and downloads by `http get -o`. `cancel` takes a line's number.",
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := ask(e, c, control.Transfers{})
			if err != nil {
				return err
			}
			if len(list) == 0 && !e.json(c) {
				e.screen.talk("no transfers")
				return nil
			}
			return e.answer(c, list, printUnderway(list))
		},
	})
}

func printUnderway(list []control.Underway) string {
	var b strings.Builder
	for i := range list {
		t := &list[i]
		fmt.Fprintf(&b, "%d  %s %s", t.ID, t.What, printable(t.Path))
		toward := " from "
		if t.Sent {
			toward = " to "
		}
		state := Bar(t.Progress, 0, false)
		switch {
		case t.Peer.IsValid():
			b.WriteString(toward + t.Peer.String())
		case t.Port > 0:
			state = fmt.Sprintf("waits for a connection on port %d", t.Port)
		case t.Progress.Elapsed == 0:
			state = "connecting"
		}
		b.WriteString(": " + strings.TrimSpace(state) + "\n")
	}
	return b.String()
}

func waitCommand(s *Shell) *cobra.Command {
	return &cobra.Command{
		Use:   "wait",
		Short: "wait for the transfers in the background",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.await(c.Context()); err != nil {
				return err
			}
			return s.env.done(c, nil)
		},
	}
}

func cancelCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel N",
		Short: "stop a transfer",
		Long: "Stop transfer N of the list that `transfers` prints, or `all`. The session\n" +
			"that started it prints how far it got, and how to continue.",
		ValidArgsFunction: at(e.transferNumbers),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] != "all" {
				id, err := strconv.ParseUint(args[0], 10, 31)
				if err != nil {
					return wrong(c, "%q is neither the number of a transfer nor all", args[0])
				}
				stop := control.StopTransfer{ID: int(id)}
				return e.done(c, control.Order(c.Context(), e.op, stop))
			}
			list, err := control.Ask(c.Context(), e.op, control.Transfers{})
			for i := range list {
				// Ignore errors of a transfer that has ended in the meantime.
				err = control.Order(c.Context(), e.op, control.StopTransfer{ID: list[i].ID})
				if errors.Is(err, control.ErrNoSuchTransfer) {
					err = nil
				}
			}
			return e.done(c, err)
		},
	}
}

// transferNumbers completes the number that `cancel` takes.
func (e *env) transferNumbers(ctx context.Context, _ string) []string {
	return append([]string{"all"}, listWords(ctx, e, control.Transfers{},
		func(t *control.Underway) string { return strconv.Itoa(t.ID) })...)
}

// printTransfer formats the result of a transfer: the course's line with the rate, the digest, and
// for a sender the connection's RTT, MSS and retransmissions.
func printTransfer(t control.Transfer) string {
	verb := "Received"
	if t.Sent {
		verb = "Sent"
	}
	text := fmt.Sprintf("%s %d total bytes (%s) in %s, %.2f MB/s\n",
		verb, t.Bytes, printable(t.Path), took(t.Seconds), t.MBPerS)
	if t.Offset > 0 {
		text += fmt.Sprintf("  after %d existing bytes: %d in all\n", t.Offset, t.Offset+t.Bytes)
	}
	text += "  SHA-256 " + t.SHA256
	if t.Verified {
		text += ", equal at both ends"
	}
	text += "\n"
	if t.Note != "" {
		text += "  " + printable(t.Note) + "\n"
	}
	if t.Sent {
		text += fmt.Sprintf("  rtt %s ms (minimum %s), mss %d, %d retransmits, %d RTOs, "+
			"%d tail probes, %d window probes\n", millis(t.RTT), millis(t.MinRTT), t.MSS,
			t.Retransmits, t.Timeouts, t.TailProbes, t.WindowProbes)
	}
	return text
}

func took(seconds float64) string {
	if seconds < 0.9995 { // 0.9996 s would print as 1e+03 ms
		return fmt.Sprintf("%.3g ms", seconds*1000)
	}
	return fmt.Sprintf("%.3f s", seconds)
}
