package checksum

import "math/bits"

// Pure returns the same as Sum, but without assembly, because the bytes that sumPairs leaves are
// too few for sumWide.
func Pure(b []byte, initial uint64) uint64 {
	b, s, c := sumPairs(b, initial)
	s, c = bits.Add64(s, c, 0)
	return Sum(b, s+c)
}
