package main

import (
	"fmt"
	"os"

	"github.com/tidepool-net/tidepool/internal/lab/emulation"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "node-quic takes no arguments: `node lab run --real` starts it")
		fmt.Fprintln(os.Stderr, "and finds it in its own folder, on PATH, or at --end quic=PATH")
		os.Exit(2)
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "node-quic:", err)
		os.Exit(1)
	}
}

// serve runs one end of a flow.
func serve() error {
	// quic-go would warn that it cannot set the buffers of a kernel socket. There is no kernel
	// socket here.
	if err := os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true"); err != nil {
		return err
	}
	return emulation.Serve(os.Stdin, os.Stdout, map[plan.Protocol]emulation.Arm{plan.QUIC: arm})
}
