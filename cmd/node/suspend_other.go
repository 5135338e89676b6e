//go:build !unix

package main

import "github.com/tidepool-net/tidepool/internal/repl"

// No key stops a process here.

func mayStop() bool { return false }

func suspending(*repl.Shell) (cancel func()) { return func() {} }
