//go:build linux

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/tidepool-net/tidepool/bench/lead"
)

// conns opens many connections to a node and prints the node's memory and goroutines.
func conns(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("conns", flag.ContinueOnError)
	count := flags.Int("count", 100_000, "number of `CONNECTIONS`")
	root := flags.String("root", repository(), "the repository's `FOLDER`")
	if err := parse(flags, args); err != nil {
		return err
	}
	if *count < 1 {
		return misuse(fmt.Sprintf("-count %d: must be 1 or more", *count))
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "tidepool-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := lead.Build(ctx, *root, dir)
	if err != nil {
		return err
	}
	c, err := p.Hold(ctx, *count)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(c)
}
