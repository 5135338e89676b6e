//go:build !unix

package main

import "github.com/tidepool-net/tidepool/internal/repl"

// On this system no key stops a process.

func mayStop() bool { return false }

func suspending(*repl.Shell) (cancel func()) { return func() {} }
