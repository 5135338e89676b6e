//go:build !linux

package main

// monotonic is 0: there is no service manager.
func monotonic() int64 { return 0 }
