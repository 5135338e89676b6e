//go:build !amd64 || purego

package checksum

// wide is false: only amd64 has an assembly version of Sum.
const wide = false

func sumWide([]byte) uint64 { panic("BUG: checksum: nothing adds wide here") }
