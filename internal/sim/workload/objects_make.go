package workload

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// item is an object at the server.
type item struct {
	name string
	data []byte
}

// A line of text has 76 characters, as base64(1) has it, which are of 57 bytes.
const (
	lineChars = 76
	lineBytes = lineChars / 4 * 3
)

// text makes an object of n random bytes: base64 in lines.
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
func makeItems(cfg *ObjectsConfig, r *rand.Rand) []item {
	var items []item
	for i := range cfg.Pairs {
		for _, kind := range []struct {
			name string
			n    int
		}{{"large", cfg.Large}, {"small", cfg.Small}} {
			items = append(items, item{fmt.Sprintf("%s-%d", kind.name, i), text(r, kind.n)})
		}
	}
	return items
}

// order returns the objects' numbers in the order in which they are to be sent.
func order(cfg *ObjectsConfig, items []item) []int {
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

// Item is an object at the server, for those who transfer it by other means.
type Item struct {
	Name string
	Data []byte
}

// Items makes the objects that cfg asks for, in the document's order, and says in which order
// they are to be sent, by their numbers. Errors: ErrConfig.
func Items(cfg ObjectsConfig, r *rand.Rand) (items []Item, sequence []int, err error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, nil, err
	}
	made := makeItems(&cfg, r)
	for i := range made {
		items = append(items, Item{made[i].name, made[i].data})
	}
	return items, order(&cfg, made), nil
}
