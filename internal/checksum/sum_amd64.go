//go:build !purego

package checksum

import "golang.org/x/sys/cpu"

// wide reports whether this processor can run sumWide.
var wide = cpu.X86.HasAVX2

// sumWide returns the partial sum of b, whose length must be a multiple of 32 and below 16 GiB, so
// that 64 bits do not overflow.
//
//go:noescape
func sumWide(b []byte) uint64
