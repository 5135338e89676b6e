//go:build !unix

package main

import (
	"context"
	"os"
)

// unread returns false: on this system only a write detects that the reader is gone.
func unread(context.Context, *os.File) bool { return false }
