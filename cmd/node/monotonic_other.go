//go:build !linux

package main

// monotonic returns 0: this system has no service manager.
func monotonic() int64 { return 0 }
