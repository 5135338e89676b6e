//go:build linux

package lead

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Demo is the output of `node demo --json`, which transfers a file through real nodes.
type Demo struct {
	Bytes        int64   `json:"bytes"`
	MBPerS       float64 `json:"mb_per_s"`
	Match        bool    `json:"sha256_match"`
	BoundMBPerS  float64 `json:"bound_mb_per_s"`
	RTTms        float64 `json:"rtt_ms"`
	Retransmits  int     `json:"retransmits"`
	RTOs         int     `json:"rtos"`
	TailProbes   int     `json:"tail_probes"`
	WindowProbes int     `json:"window_probes"`
}

// Demo runs `node demo`: real processes, from file to file. It returns an error if the file does
// not arrive intact.
func (p *Program) Demo(ctx context.Context, args ...string) (d Demo, err error) {
	folder := filepath.Join(p.Dir, "demo")
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	args = append([]string{"demo", "--json", "--quiet", "--out", folder}, args...)
	c := exec.CommandContext(ctx, p.Path, args...)
	// `node demo` then ends its nodes
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	c.WaitDelay = 5 * time.Second
	var complaint bytes.Buffer
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		return d, fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	if err := json.Unmarshal(out, &d); err != nil {
		return d, err
	}
	if !d.Match {
		return d, errors.New("the file did not arrive intact")
	}
	return d, nil
}

// Account summarizes the transfer.
func (d *Demo) Account() string {
	return fmt.Sprintf("RTT %.3g ms, %d retransmitted, %d RTOs, %d tail and %d window probes",
		d.RTTms, d.Retransmits, d.RTOs, d.TailProbes, d.WindowProbes)
}

// ErrNothingExpected is returned for an experiment without expectations to check.
var ErrNothingExpected = errors.New("the experiment has no expectations")

// Check runs an experiment with `node lab check`, and returns the time and the CPU time that it
// took.
func (p *Program) Check(ctx context.Context, preset string) (took, busy time.Duration, err error) {
	start := time.Now()
	c := exec.CommandContext(ctx, p.Path, "lab", "check", preset)
	out, err := c.CombinedOutput()
	const misuse = 2 // exit status if an experiment cannot be checked
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == misuse {
		return 0, 0, ErrNothingExpected
	}
	if err != nil {
		return 0, 0, fmt.Errorf("node lab check %s: %w: %s", preset, err, lastLine(out))
	}
	return time.Since(start), c.ProcessState.UserTime() + c.ProcessState.SystemTime(), nil
}

// Founding lists the experiments that reproduce a founding document.
func (p *Program) Founding(ctx context.Context) (names []string, err error) {
	out, err := exec.CommandContext(ctx, p.Path, "lab", "list").Output()
	if err != nil {
		return nil, err
	}
	return founding(string(out)), nil
}

// founding parses `node lab list`: headings of groups are not indented, experiments are.
func founding(list string) (names []string) {
	wanted := false
	for line := range strings.Lines(list) {
		switch {
		case strings.TrimSpace(line) == "":
			wanted = false
		case !strings.HasPrefix(line, " "):
			wanted = strings.Contains(line, "founding document")
		case wanted:
			names = append(names, strings.Fields(line)[0])
		}
	}
	return names
}
