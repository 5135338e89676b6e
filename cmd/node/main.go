// Command node runs a host or router of a virtual network that .lnx files describe. It also starts
// networks, controls running nodes, and runs experiments: `node help` lists the commands.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
