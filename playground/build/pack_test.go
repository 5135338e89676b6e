package main

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program is a module with all that packer replaces, and bytes that look like it.
func program() []byte {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same in each run
	noise := func(n int) (b []byte) {
		for range n {
			b = append(b, byte(random.Uint32()))
		}
		return b
	}
	body := binary.AppendUvarint([]byte{1, 0, 0x41, 1, 0x0b}, 300)
	for i := range uint64(300) {
		body = binary.AppendUvarint(body, i+40)
	}
	code := noise(1000)
	for i := range uint64(2000) {
		code = binary.AppendUvarint(append(code, beforeReturn...), 1<<34-20_000+11*i)
		code = binary.AppendUvarint(append(code, beforeWait...), i%200)
		code = binary.AppendUvarint(append(code, beforeBlocks...), i%150)
		for k := range i%150 + 1 {
			code = binary.AppendUvarint(code, k)
		}
		code = append(code, noise(int(i%9))...) // the next number may be cut
	}
	code = append(append(code, noise(1<<16)...), code...)
	const count = 40
	le := binary.LittleEndian
	data := []byte(tableMagic)
	for _, v := range []uint64{count, 0, 0, 72, 72, 72, 72, 72} {
		data = le.AppendUint64(data, v)
	}
	for i := range uint32(count) {
		data = le.AppendUint32(le.AppendUint32(data, 1000+i), 8*count+i*(recordSize+8))
	}
	for i := range uint32(count) {
		data = append(le.AppendUint32(data, 1000+i), noise(24)...)
		data = append(data, make([]byte, recordSize+8-28)...) // it has no tables
	}
	for i := range uint32(count * 16) {
		data = append(le.AppendUint32(data, i/16), make([]byte, 16)...)
	}
	return assemble([]section{{elementSection, body}, {codeSection, code}, {dataSection, data}})
}

// TestPack checks that the page restores what pack packs, however it arrives.
func TestPack(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("skip: needs node")
	}
	want := program()
	packed, err := pack(want)
	require.NoError(t, err)
	plain, err := compress(want)
	require.NoError(t, err)
	assert.Less(t, len(packed), len(plain)*3/4)
	name := filepath.Join(t.TempDir(), "program.pack.gz")
	require.NoError(t, os.WriteFile(name, packed, 0o600))
	for _, piece := range []int{7, 1 << 16} {
		unpack := exec.CommandContext(t.Context(), "node", "../test/unpack.mjs", name, strconv.Itoa(piece))
		unpack.Stderr = os.Stderr
		restored, err := unpack.Output()
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, restored), "in pieces of %d bytes", piece)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	code := program()
	list, err := split(code)
	require.NoError(t, err)
	p := packer{from: code, to: bytes.Clone(code)}
	for _, at := range p.replace(list) {
		require.NotZero(t, at.end)
		assert.NotEqual(t, p.from[at.begin:at.end], p.to[at.begin:at.end])
	}
	for end := range module0 {
		_, err := pack([]byte(module0[:end]))
		if err != nil { // it must not panic
			require.ErrorIs(t, err, errModule)
		}
	}
}

// TestVisit checks that a site of more than 4 MB is refused, without what is loaded on demand.
func TestVisit(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	file := func(name string, size int) {
		require.NoError(t, os.WriteFile(filepath.Join(out, name), make([]byte, size), 0o600))
	}
	file("tidepool.pack.gz", maxVisit-1000)
	file(laboratory, maxVisit)
	file("page.js", 100_000) // a hundredth when compressed
	require.NoError(t, checkVisit(out))
	file("tidepool.pack.gz", maxVisit)
	require.ErrorContains(t, checkVisit(out), "the limit is 4000000")
}
