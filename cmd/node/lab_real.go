package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/emulation"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
)

// realFlags are the flags of `node lab run` for runs in real time.
type realFlags struct {
	on     bool
	ends   map[string]string
	atMost time.Duration
}

// defaultRealLimit is the duration above which real-time runs need --at-most.
const defaultRealLimit = 10 * time.Minute

func (r *realFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&r.on, "real", false, "also run in real time: with processes, over UDP")
	f.DurationVar(&r.atMost, "at-most", defaultRealLimit,
		"do not start a --real run that takes longer than `TIME`")
	f.StringToStringVar(&r.ends, "end", nil,
		"run both ends of all flows of a protocol with a program: `PROTOCOL=PROGRAM`;"+
			" see docs/EXPERIMENTS.md")
	f.Lookup("end").DefValue = "" // hides an empty list in the help
}

func (r *realFlags) request(q *lab.Request, trials int) error {
	self, err := os.Executable()
	if err != nil { // fails without /proc
		self = os.Args[0]
	}
	q.Real, q.RealTrials = r.on, trials
	q.Processes = emulation.Options{
		End: []string{self, "lab", endWord}, Middle: []string{self, "lab", middleWord},
		Programs: map[plan.Protocol]string{}, Printed: q.Printed,
	}
	if program := quicProgram(self); program != "" {
		q.Processes.Programs[plan.QUIC] = program
	}
	for protocol, program := range r.ends {
		switch p := plan.Protocol(protocol); p {
		case plan.TCP, plan.RCP, plan.RDT, plan.QUIC:
			q.Processes.Programs[p] = program
		default:
			return &usageError{fmt.Errorf("--end %s=%s: protocol must be tcp, rcp, rdt or quic",
				protocol, program)}
		}
	}
	return nil
}

// quicProgram finds node-quic in this program's directory or on PATH; empty: not found.
func quicProgram(self string) string {
	beside, err := exec.LookPath(filepath.Join(filepath.Dir(self), emulation.QUICProgram))
	if err == nil {
		return beside
	}
	found, err := exec.LookPath(emulation.QUICProgram)
	if err != nil {
		return ""
	}
	return found
}

// shortest returns a duration for a quick run: twice the warm-up, but at least 20 s.
func shortest(study *lab.Study) time.Duration {
	d := 20 * time.Second
	for i := range study.Cells {
		d = max(d, 2*study.Cells[i].Warmup)
	}
	return d
}

// begin prints how long the real-time runs take. It returns an error if that exceeds the limit.
func (r *realFlags) begin(c *cobra.Command, study *lab.Study, runs int, most time.Duration) error {
	if most > r.atMost {
		return fmt.Errorf("%s in real time may take %s; --at-most %s allows that, and "+
			"--set duration=%v, --trials 1 or --index N reduce it", counted(runs, "run"),
			long(most), most.Round(time.Second), shortest(study))
	}
	_, err := fmt.Fprintf(c.ErrOrStderr(), "%s in real time, one after the other: up to %s\n",
		counted(runs, "run"), long(most))
	return err
}
