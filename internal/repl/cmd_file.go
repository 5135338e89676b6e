package repl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func (s *Shell) sendFile() *cobra.Command {
	var offset int64
	c := &cobra.Command{
		Use:     "sendfile PATH ADDR PORT",
		Aliases: []string{"sf"},
		Short:   "connect, send a file, close",
		Long: "Connect, send the file and close. It runs in the background: the\n" +
			"prompt returns and shows how far it is, the end is announced with rate\n" +
			"and SHA-256. A script waits for it at its end, or at `wait`. --offset sends\n" +
			"what is behind the first bytes, which `recvfile --resume` has already; both\n" +
			"ends print the SHA-256 of the whole file.",
		ValidArgsFunction: at(files),
		RunE: func(c *cobra.Command, args []string) error {
			addr, err := parseAddr(c, args[1])
			if err != nil {
				return err
			}
			port, err := parsePort(c, args[2])
			if err != nil {
				return err
			}
			if offset < 0 {
				return wrong(c, "--offset %d: want bytes", offset)
			}
			req := control.SendFile{Path: args[0], Addr: addr, Port: port, Offset: offset}
			doing := "to " + args[1] + ":" + args[2]
			return s.background(c, args[0], doing, func(ctx context.Context, tell progress) (
				control.Transfer, error,
			) {
				req.Progress = s.streamed(c, tell)
				return control.Ask(ctx, s.op, req)
			})
		},
	}
	c.Flags().Int64Var(&offset, "offset", 0, "begin behind the first `BYTES`")
	return s.streamFlag(s.jsonFlag(c))
}

// streamed is tell, and a line of JSON for each call if the command is to print such.
func (s *Shell) streamed(c *cobra.Command, tell progress) progress {
	if !streams(c) {
		return tell
	}
	return func(p control.Progress) {
		_ = s.line("progress", p) // plain values
		tell(p)
	}
}

func (s *Shell) recvFile() *cobra.Command {
	var req control.RecvFile
	c := &cobra.Command{
		Use:     "recvfile PATH PORT",
		Aliases: []string{"rf"},
		Short:   "listen, store what one connection brings",
		Long: "Listen, take one connection, store what comes, close. What was in the\n" +
			"file is gone. It runs in the background, as `sendfile` does. While it comes\n" +
			"the data is in PATH.part, where it stays if the rest does not come: --resume\n" +
			"goes on behind it, when the sender has been told by `sendfile --offset`.",
		ValidArgsFunction: at(files),
		RunE: func(c *cobra.Command, args []string) error {
			port, err := parsePort(c, args[1])
			if err != nil {
				return err
			}
			if err := checkRecv(c, &req); err != nil {
				return err
			}
			req := req
			req.Path, req.Port = args[0], port
			doing := "waits for a connection on port " + args[1]
			return s.background(c, args[0], doing, func(ctx context.Context, tell progress) (
				control.Transfer, error,
			) {
				req.Progress = s.streamed(c, s.resuming(args[0], tell))
				return control.Ask(ctx, s.op, req)
			})
		},
	}
	f := c.Flags()
	f.BoolVar(&req.Resume, "resume", false, "go on behind what PATH.part has")
	f.Int64Var(&req.Offset, "offset", 0, "go on behind the first `BYTES` of it")
	f.Int64Var(&req.Size, "size", 0, "the whole file must have `BYTES`")
	f.StringVar(&req.SHA256, "sha256", "", "its SHA-256 must be `HEX`")
	return s.streamFlag(s.jsonFlag(c))
}

// checkRecv looks at the flags of recvfile.
func checkRecv(c *cobra.Command, r *control.RecvFile) error {
	switch digest, err := hex.DecodeString(r.SHA256); {
	case r.Offset < 0:
		return wrong(c, "--offset %d: want bytes", r.Offset)
	case r.Size < 0 || r.Size == 0 && c.Flags().Changed("size"):
		return wrong(c, "--size %d: want bytes", r.Size)
	case r.SHA256 != "" && (err != nil || len(digest) != sha256.Size):
		return wrong(c, "--sha256 %s: want 64 hex digits", printable(r.SHA256))
	}
	r.Resume = r.Resume || c.Flags().Changed("offset")
	return nil
}

// resuming is tell, and says first what the sender must be told.
func (s *Shell) resuming(path string, tell progress) progress {
	said := false
	return func(p control.Progress) {
		if !said && p.Offset > 0 {
			s.screen.talk(fmt.Sprintf("recvfile %s goes on at byte %d: the sender's is "+
				"`sendfile --offset %d`", printable(path), p.Offset, p.Offset))
		}
		said = true
		tell(p)
	}
}

func (s *Shell) transfers() *cobra.Command {
	return s.jsonFlag(&cobra.Command{
		Use:   "transfers",
		Short: "what runs in the background",
		RunE: func(c *cobra.Command, _ []string) error {
			return s.answer(c, s.jobList(), s.printJobs())
		},
	})
}

// jobInfo is a transfer in the background, for programs.
type jobInfo struct {
	Number   int              `json:"number"`
	Name     string           `json:"name"`
	State    string           `json:"state"` // waiting, running or failed
	Progress control.Progress `json:"progress"`
	Problem  string           `json:"problem,omitempty"`
}

func (s *Shell) jobList() []jobInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]jobInfo, 0, len(s.jobs))
	for _, j := range s.jobs {
		info := jobInfo{Number: j.number, Name: j.name, State: "waiting", Progress: j.progress}
		switch {
		case j.ended && j.err != nil:
			info.State, info.Problem = "failed", j.err.Error()
		case j.started:
			info.State = "running"
		}
		list = append(list, info)
	}
	return list
}

func (s *Shell) wait() *cobra.Command {
	return &cobra.Command{
		Use:   "wait",
		Short: "wait for the transfers in the background",
		RunE:  func(c *cobra.Command, _ []string) error { return s.await(c.Context()) },
	}
}

func (s *Shell) cancel() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel N",
		Short: "end a transfer that `transfers` shows",
		RunE: func(c *cobra.Command, args []string) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, j := range s.jobs {
				if fmt.Sprint(j.number) == args[0] {
					j.cancel()
					return nil
				}
			}
			return wrong(c, "no transfer has the number %q", args[0])
		},
	}
}

func (s *Shell) printJobs() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, j := range s.jobs {
		state := "waiting"
		switch {
		case j.ended && j.err != nil:
			state = "failed"
		case j.started && (j.progress.Bytes > 0 || j.progress.Total == 0):
			state = bar(j.progress, 0)
		}
		fmt.Fprintf(&b, "%d  %s: %s\n", j.number, j.name, state)
	}
	return b.String()
}

// printTransfer is a transfer's end: the family's line with rate and digest behind it, and for a
// sender what slowed it.
func printTransfer(t control.Transfer) string {
	verb := "Received"
	if t.Sent {
		verb = "Sent"
	}
	text := fmt.Sprintf("%s %d total bytes (%s) in %s, %.2f MB/s\n",
		verb, t.Bytes, printable(t.Path), took(t.Seconds), t.MBPerS)
	if t.Offset > 0 {
		text += fmt.Sprintf("  behind %d that were there: %d in all\n", t.Offset, t.Offset+t.Bytes)
	}
	text += "  SHA-256 " + t.SHA256 + "\n"
	if t.Note != "" {
		text += "  " + printable(t.Note) + "\n"
	}
	if t.Sent {
		text += fmt.Sprintf("  rtt %s ms (least %s), mss %d, %d retransmits, %d RTOs, "+
			"%d tail probes, %d window probes\n", millis(t.RTT), millis(t.MinRTT), t.MSS,
			t.Retransmits, t.Timeouts, t.TailProbes, t.WindowProbes)
	}
	return text
}

// took is how long something took, in three figures or more.
func took(seconds float64) string {
	if seconds < 0.9995 { // 0.9996 would be 1e+03 ms
		return fmt.Sprintf("%.3g ms", seconds*1000)
	}
	return fmt.Sprintf("%.3f s", seconds)
}
