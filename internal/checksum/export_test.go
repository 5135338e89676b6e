package checksum

// Pure is Sum without assembly: what sumPairs leaves is too short for it.
func Pure(b []byte, initial uint64) uint64 {
	b, s, c := sumPairs(b, initial)
	return Sum(b, addCarry(s, c))
}
