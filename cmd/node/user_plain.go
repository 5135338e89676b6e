//go:build !linux

package main

// noNewPrivileges does nothing: only Linux has this attribute.
func noNewPrivileges() error { return nil }
