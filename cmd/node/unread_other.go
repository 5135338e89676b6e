//go:build !unix

package main

import (
	"context"
	"os"
)

// unread is not possible on this system: only a write detects it.
func unread(context.Context, *os.File) bool { return false }
