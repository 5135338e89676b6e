//go:build !unix

package services

import "os"

// lockFile does nothing here: this system has no advisory locks, and two
// transfers into one file are the operator's to avoid.
func lockFile(*os.File) error { return nil }
