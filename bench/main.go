//go:build linux

// Command bench compares the project with its peers on the same machine, in turns: gVisor's
// netstack, the kernel's TCP, and senders without a protocol.
//
//	bench quick       # one minute; prints one line of JSON for each case
//	bench all         # everything; writes docs/performance.md and its files
//	bench conns       # 100,000 connections to one node: its memory and goroutines
//	bench profile     # a CPU profile of both ends of a stream, as flame graphs
//	bench examine     # gVisor or lneto as the subject of the examiner
//	bench fuzz        # the same sequences of events for tidepool and other stacks
//
// It logs to standard error. A case that cannot run on this machine is printed with "skip" and the
// reason. Each end of a connection (package end) is a process of its own, on the loopback or in a
// network namespace. These processes exit when bench exits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"

	"github.com/tidepool-net/tidepool/bench/end"
	"github.com/tidepool-net/tidepool/bench/netns"
)

func main() {
	if len(os.Args) < 2 {
		usage(2)
	}
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, os.Args[1]) {
		usage(0)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1], os.Args[2:])
	if ctx.Err() != nil {
		err = context.Cause(ctx) // report the signal, not the error that it caused
	}
	stop()
	if wrong, ok := errors.AsType[misuse](err); ok {
		if wrong != "" {
			fmt.Fprintln(os.Stderr, "bench:", wrong)
		}
		os.Exit(2)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func usage(status int) {
	fmt.Fprintln(os.Stderr, "usage: bench quick | all | conns | profile | examine | fuzz, "+
		"each with -help")
	os.Exit(status)
}

func run(ctx context.Context, command string, args []string) error {
	if inside(command) && len(args) != 1 {
		usage(2)
	}
	switch command {
	case "quick":
		return quick(ctx, args)
	case "all":
		return all(ctx, args)
	case "profile":
		return profileCommand(ctx, args)
	case "conns":
		return conns(ctx, args)
	case "examine":
		return examineCommand(ctx, args)
	case "fuzz":
		return fuzzCommand(ctx, args)
	case "end":
		return end.Run(args[0], os.Stdin, os.Stdout)
	case "bare":
		return netns.Bare(args[0])
	case "lose":
		share, err := strconv.ParseFloat(args[0], 64)
		if err != nil {
			return err
		}
		return netns.Lose(share)
	default:
		usage(2)
		return nil
	}
}

// inside reports whether command is one that this program passes to processes it starts.
func inside(command string) bool {
	return command == "end" || command == "bare" || command == "lose"
}
