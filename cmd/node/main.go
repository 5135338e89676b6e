// Command node runs a host or router of a virtual network that .lnx files describe. It also starts
// whole networks, controls running nodes, and runs experiments. `node help` lists the commands.
package main

import (
	"os"

	"github.com/tidepool-net/tidepool/netns"
)

func main() {
	netns.Main()
	os.Exit(run(mahimahiArgs(os.Args), os.Stdin, os.Stdout, os.Stderr))
}
