package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkCells decodes a thousand cells.
func BenchmarkCells(b *testing.B) {
	var values []string
	for i := range 100 {
		values = append(values, fmt.Sprintf("%dms", i+1))
	}
	f, err := Parse("x", []byte("name: x\npath: {down: {delay: 1ms, rate: 1Mbit, queue: 1bdp}}\n"+
		"flows: [{cc: reno}, {cc: cubic}]\nsweep: {path.down.delay: ["+strings.Join(values, ", ")+
		"], seed: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}\nexpect: [{value: goodput(3ms) > goodput(4ms), source: s}, {value: rtt < 3s, source: s}]\n"))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		_, err := f.Cells()
		require.NoError(b, err)
	}
}
