package repl

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

func TestResumedTransfers(t *testing.T) {
	var asked []any
	node := &fake{do: func(_ context.Context, req any) (any, error, bool) {
		switch r := req.(type) {
		case control.RecvFile:
			asked = append(asked, r)
			p := control.Progress{Offset: 1000, Total: -1}
			r.Progress(p)
			r.Progress(p)
			got := someTransfer(r.Path, false)
			got.Offset, got.Note = 1000, "the file is gone since\x1b"
			return got, nil, true
		case control.SendFile:
			asked = append(asked, r)
			r.Progress(control.Progress{Offset: 1000, Bytes: 500, Total: 1000, Elapsed: time.Second})
			return someTransfer(r.Path, true), nil, true
		}
		return nil, nil, false
	}}
	s := open(t, node, Config{})
	digest := strings.Repeat("0A", 32)
	require.NoError(t, s.Execute(t.Context(), "recvfile f 80 --resume --size 5000 --sha256 "+digest))
	require.NoError(t, s.await(t.Context()))
	r, ok := asked[0].(control.RecvFile)
	require.True(t, ok)
	r.Progress = nil
	assert.Equal(t, control.RecvFile{Path: "f", Port: 80, Resume: true, Size: 5000, SHA256: digest}, r)
	assert.Equal(t, "recvfile f continues at byte 1000: send with `sendfile --offset 1000`\n", s.err.String())
	out := s.out.String()
	assert.Contains(t, out, "\n  after 1000 existing bytes: 1049576 in all\n")
	assert.Contains(t, out, "\n  the file is gone since\\x1b\n")

	require.NoError(t, s.Execute(t.Context(), "sendfile f 10.0.0.1 80 --offset 1000 --json-stream"))
	require.NoError(t, s.await(t.Context()))
	sent, ok := asked[1].(control.SendFile)
	require.True(t, ok)
	assert.Equal(t, int64(1000), sent.Offset)
	assert.Contains(t, s.out.String(),
		`{"event":"progress","data":{"offset":1000,"bytes":500,"total":1000,"elapsed_ns":1000000000}}`+"\n"+`{"event":"result"`)
	require.NoError(t, s.Execute(t.Context(), "recvfile f 80 --offset 7"))
	require.NoError(t, s.await(t.Context()))
	r, ok = asked[2].(control.RecvFile)
	require.True(t, ok)
	assert.True(t, r.Resume, "an offset says so")

	for line, want := range map[string]string{
		"recvfile f 80 --sha256 abc":         "must be 64 hex digits",
		"recvfile f 80 --size 0":             "must be 1 or more bytes",
		"recvfile f 80 --offset=-1":          "must be 0 or more",
		"sendfile f 10.0.0.1 80 --offset=-1": "must be 0 or more",
	} {
		err := s.Execute(t.Context(), line)
		require.ErrorIs(t, err, control.ErrUsage, line)
		assert.ErrorContains(t, err, want)
	}
	assert.Equal(t, "75%  500 B/s 0:01 left", strings.TrimSpace(
		Bar(control.Progress{Offset: 1000, Bytes: 500, Total: 1000, Elapsed: time.Second}, 0, false)))
}
