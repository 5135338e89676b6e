package workload

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// Item is an object at the server.
type Item struct {
	Name string
	Data []byte
}

// A line of text has 76 characters, which encode 57 bytes, as in base64(1).
const (
	lineChars = 76
	lineBytes = lineChars / 4 * 3
)

// text makes an object of n random bytes, encoded as base64 in lines.
func text(r *rand.Rand, n int) []byte {
	b := make([]byte, 0, base64.StdEncoding.EncodedLen(n)+n/lineBytes+1)
	var raw [lineBytes + 7]byte
	for n > 0 {
		for i := 0; i < lineBytes; i += 8 {
			binary.LittleEndian.PutUint64(raw[i:], r.Uint64())
		}
		b = base64.StdEncoding.AppendEncode(b, raw[:min(lineBytes, n)])
		b = append(b, '\n')
		n -= lineBytes
	}
	return b
}

// makeItems makes the objects in the document's order: large-0, small-0, large-1 and so on.
func makeItems(cfg *ObjectsConfig, r *rand.Rand) []Item {
	var items []Item
	for i := range cfg.Pairs {
		for _, kind := range []struct {
			name string
			n    int
		}{{"large", cfg.Large}, {"small", cfg.Small}} {
			items = append(items, Item{fmt.Sprintf("%s-%d", kind.name, i), text(r, kind.n)})
		}
	}
	return items
}

// order returns the objects' numbers in the order in which they are sent.
func order(cfg *ObjectsConfig, items []Item) []int {
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

// Items makes the objects of an ObjectsConfig, in the document's order, and returns their numbers
// in the order in which they are to be sent. Errors: ErrObjectsConfig.
func Items(cfg ObjectsConfig, r *rand.Rand) (items []Item, sequence []int, err error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, nil, err
	}
	items = makeItems(&cfg, r)
	return items, order(&cfg, items), nil
}
