//go:build !linux

package main

// noNewPrivileges does nothing: only Linux has such a switch.
func noNewPrivileges() error { return nil }
