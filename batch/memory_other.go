//go:build !unix

package batch

import "os"

// maxMemory is not known here.
func maxMemory(*os.ProcessState) int64 { return 0 }
