package main

import (
	"fmt"
	"os"

	"github.com/tidepool-net/tidepool/internal/lab/emulation"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "node-quic is started by `node lab run --real`, without arguments;")
		fmt.Fprintln(os.Stderr, "it is found beside that program, on PATH, or by --end quic=PATH")
		os.Exit(2)
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "node-quic:", err)
		os.Exit(1)
	}
}

// serve is an end of a flow.
func serve() error {
	// quic-go asks the kernel about the buffers of a socket, and complains that there is no kernel.
	if err := os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true"); err != nil {
		return err
	}
	return emulation.Serve(os.Stdin, os.Stdout, map[plan.Protocol]emulation.Arm{plan.QUIC: arm})
}
