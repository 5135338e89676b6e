// Command node runs one host or router of a virtual network described by .lnx files, and what goes
// with it: node run, node validate, node demo. `node help` lists all.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
