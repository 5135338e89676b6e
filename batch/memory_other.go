//go:build !unix

package batch

import "os"

// maxMemory returns 0: it is not available on this system.
func maxMemory(*os.ProcessState) int64 { return 0 }
