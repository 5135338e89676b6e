package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// demoBytes is the size of founding document 001's largest file, node demo's default.
const demoBytes = 92_339_236

// transfer is what `node demo --json` says.
type transfer struct {
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

// demo runs `node demo`: real processes, from file to file.
func (b *bench) demo(ctx context.Context, args ...string) (t transfer, err error) {
	folder := filepath.Join(b.dir, "demo")
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	args = append([]string{"demo", "--json", "--quiet", "--out", folder}, args...)
	c := exec.CommandContext(ctx, b.program, args...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // it ends its nodes
	var complaint bytes.Buffer
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		return t, fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	if err := json.Unmarshal(out, &t); err != nil {
		return t, err
	}
	if !t.Match {
		return t, errors.New("the file did not arrive intact")
	}
	return t, nil
}

// account is how a transfer went, in a few words.
func (t *transfer) account() string {
	return fmt.Sprintf("RTT %.3g ms, %d sent again, %d RTOs, %d tail and %d window probes",
		t.RTTms, t.Retransmits, t.RTOs, t.TailProbes, t.WindowProbes)
}

// rate is the one figure of a transfer.
func (t *transfer) rate(floor float64) []sample {
	return []sample{{value: t.MBPerS, unit: "MB/s", floor: floor, note: t.account()}}
}

func bytesFlag(n int64) []string { return []string{"--bytes", strconv.FormatInt(n, 10)} }

// cleanDirect moves a file between two nodes on one link.
func cleanDirect(ctx context.Context, b *bench) ([]sample, error) {
	args := append(bytesFlag(b.size(1e9, 200e6)), "--direct", "--bare")
	t, err := b.demo(ctx, args...)
	return t.rate(200), err
}

// cleanRouted moves a file through one of our routers.
func cleanRouted(ctx context.Context, b *bench) ([]sample, error) {
	args := append(bytesFlag(b.size(1e9, 200e6)), "--loss", "0", "--bare")
	t, err := b.demo(ctx, args...)
	return t.rate(100), err
}

// lossyRouted is `node demo` with all its defaults, captures and probe included.
func lossyRouted(ctx context.Context, b *bench) ([]sample, error) {
	t, err := b.demo(ctx, bytesFlag(b.size(demoBytes, 30e6))...)
	samples := t.rate(40)
	samples[0].note = fmt.Sprintf("bound %.1f, ", t.BoundMBPerS) + samples[0].note
	return samples, err
}

// wrapBytes is more than the sequence numbers are.
const wrapBytes = 5_000_000_000

// wrap moves so much that the sequence numbers begin again, and counts what arrived intact. It is
// not shortened: less would not wrap.
func wrap(ctx context.Context, b *bench) ([]sample, error) {
	t, err := b.demo(ctx, append(bytesFlag(wrapBytes), "--direct", "--bare")...)
	return []sample{{
		value: float64(t.Bytes) / 1e9, unit: "GB intact", floor: wrapBytes / 1e9,
		note: fmt.Sprintf("%.0f MB/s, %s", t.MBPerS, t.account()),
	}}, err
}
