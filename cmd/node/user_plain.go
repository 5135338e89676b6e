//go:build !linux

package main

// noNewPrivileges does nothing: only Linux has this feature.
func noNewPrivileges() error { return nil }
