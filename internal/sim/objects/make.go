package objects

import (
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
)

// item is an object at the server.
type item struct {
	name string
	data []byte
	sum  [md5.Size]byte
}

// lineBytes is how long a line of text is, as base64(1) has it.
const lineBytes = 76

// text makes an object of n random bytes: base64 in lines.
func text(r *rand.Rand, n int) []byte {
	raw := make([]byte, (n+7)&^7)
	for i := 0; i < len(raw); i += 8 {
		v := r.Uint64()
		for j := range 8 {
			raw[i+j] = byte(v >> (8 * j))
		}
	}
	long := base64.StdEncoding.AppendEncode(nil, raw[:n])
	b := make([]byte, 0, len(long)+len(long)/lineBytes+1)
	for len(long) > 0 {
		line := long[:min(lineBytes, len(long))]
		b = append(append(b, line...), '\n')
		long = long[len(line):]
	}
	return b
}

// makeItems makes the objects in the document's order: large-0, small-0, large-1 and so on.
func makeItems(cfg *Config, r *rand.Rand) []item {
	var items []item
	for i := range cfg.Pairs {
		for _, kind := range []struct {
			name string
			n    int
		}{{"large", cfg.Large}, {"small", cfg.Small}} {
			o := item{name: fmt.Sprintf("%s-%d", kind.name, i), data: text(r, kind.n)}
			o.sum = md5.Sum(o.data)
			items = append(items, o)
		}
	}
	return items
}

// order returns the objects' numbers in the order in which they are to be sent.
func order(cfg *Config, items []item) []int {
	seq := make([]int, 0, len(items))
	for i := range items {
		seq = append(seq, i)
	}
	if !cfg.SmallestFirst {
		return seq
	}
	seq = seq[:0]
	for first := range 2 {
		for i := 1 - first; i < len(items); i += 2 {
			seq = append(seq, i)
		}
	}
	return seq
}
