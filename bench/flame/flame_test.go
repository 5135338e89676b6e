package flame

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	loop = module + "/internal/node.(*Node).loop"
	send = module + "/internal/link.(*UDP).WriteBatch"
	read = module + "/internal/buffer.(*Ring).Read"
	app  = module + "/bench/end.(*process).bulk"
)

func sample() *Profile {
	p := &Profile{Stacks: []Stack{
		{[]string{"runtime.goexit", loop, send, "syscall.Syscall6"}, 50},
		{[]string{"runtime.goexit", loop}, 10},
		{[]string{"runtime.goexit", app, read, "runtime.memmove"}, 20},
		{[]string{"runtime.goexit", app}, 5},
		{[]string{"runtime.mcall", "runtime.schedule"}, 15},
	}}
	for _, s := range p.Stacks {
		p.Total += s.Time
	}
	return p
}

func TestPackages(t *testing.T) {
	assert.Equal(t, []Share{
		{"the kernel, called by internal/link", 0.5},
		{"copies in internal/buffer", 0.2},
		{"Go's runtime: scheduler, timers, memory", 0.15},
		{"internal/node", 0.1},
		{"the application that measures", 0.05},
	}, sample().Packages())
}

func TestFunctions(t *testing.T) {
	list := sample().Functions()
	assert.Equal(t, Share{"syscall.Syscall6", 0.5}, list[0])
	assert.Contains(t, list, Share{"node.(*Node).loop", 0.1})
}

func TestGraphIsXML(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, sample().WriteSVG(&b, "a < b"))
	assert.Contains(t, b.String(), "node.(*Node).loop, 60.0 %")
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
	}
}

func TestRead(t *testing.T) {
	outer := &profile.Function{ID: 1, Name: "outer"}
	inlined := &profile.Function{ID: 2, Name: "inlined"}
	at := &profile.Location{ID: 1, Line: []profile.Line{{Function: inlined}, {Function: outer}}}
	p := profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Sample:     []*profile.Sample{{Location: []*profile.Location{at}, Value: []int64{1, 10}}},
		Location:   []*profile.Location{at}, Function: []*profile.Function{outer, inlined},
	}
	path := filepath.Join(t.TempDir(), "cpu")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, p.Write(f))
	require.NoError(t, f.Close())
	got, err := Read(path)
	require.NoError(t, err)
	assert.Equal(t, &Profile{[]Stack{{[]string{"outer", "inlined"}, 10}}, 10}, got)
	_, err = Read(filepath.Join(t.TempDir(), "nothing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
