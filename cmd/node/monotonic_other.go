//go:build !linux

package main

// monotonic is of use to no service manager here.
func monotonic() int64 { return 0 }
