package repl

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// TestNarrow checks that messages fit a narrow terminal.
func TestNarrow(t *testing.T) {
	for _, width := range []int{40, 60, 80} {
		for _, line := range []string{"help", "help sendfile", "help watch", "help set"} {
			s := open(t, &fake{}, Config{Width: wide(width)})
			require.NoError(t, s.Execute(t.Context(), line))
			for text := range strings.Lines(s.out.String()) {
				assert.LessOrEqual(t, columns(strings.TrimSuffix(text, "\n")), width, line)
			}
		}
		s := open(t, &fake{}, Config{Width: wide(width)})
		s.complain(s.Execute(t.Context(), "ping"))
		s.Say("attached to node A; Ctrl-D leaves, and it runs on, whoever else may be there too")
		for text := range strings.Lines(s.err.String()) {
			assert.LessOrEqual(t, columns(strings.TrimSuffix(text, "\n")), width)
		}
	}
}

// TestBarsFit checks that progress bars fit a terminal of any width, also after a resize.
func TestBarsFit(t *testing.T) {
	p := control.Progress{Bytes: 30e6, Total: 100e6, Elapsed: time.Second}
	unsized := control.Progress{Bytes: 30e6, Total: -1, Elapsed: time.Second}
	jobs := []*job{
		{name: "sendfile 報告書の写し.bin", started: true, progress: p},
		{name: "recvfile got", started: true, progress: unsized},
	}
	for _, tt := range []struct {
		jobs          []*job
		width         int
		line, prompts string
	}{
		{
			jobs[:1], 100, "sendfile 報告書の写し.bin ######--------------  30% 30.0 MB/s 0:02 left",
			"###-------  30% 30.0 MB/s 0:02 left",
		},
		{
			jobs[:1], 70, "sendfile 報告書の写し.bin  30% 30.0 MB/s 0:02 left",
			" 30% 30.0 MB/s 0:02 left",
		},
		{jobs[:1], 40, " 30% 30.0 MB/s 0:02 left", "30%"},
		{jobs, 40, " 30% 30.0 MB/s 0:02 left | 30.0 MB, 30.", "30% +1"},
		{jobs[1:], 40, "recvfile got 30.0 MB, 30.0 MB/s", "30.0 MB"},
		{jobs[:1], 20, " 30% 30.0 MB/s 0:02", "30%"},
		{jobs[:1], 1, "", "30%"},
	} {
		assert.Equal(t, tt.line, barLine(tt.jobs, tt.width))
		assert.Equal(t, tt.prompts, shortBars(tt.jobs, tt.width))
	}
}

// TestSuspend checks that a command that uses the whole terminal leaves the alternate screen while
// the process is stopped.
func TestSuspend(t *testing.T) {
	s := open(t, &fake{}, Config{})
	s.Suspend(func() {})
	assert.Empty(t, s.out.String())
	s.env.screen.hold(otherScreen)
	s.Suspend(func() {
		assert.Equal(t, otherScreen+firstScreen, s.out.String())
	})
	assert.Equal(t, otherScreen, s.out.String())
}

// TestAFrameFollowsTheTerminal checks that after a resize the frame fits the new width,
// and that no character is in reverse video, as if it had changed.
func TestAFrameFollowsTheTerminal(t *testing.T) {
	s := open(t, &fake{}, Config{})
	f := frame{screen: s.env.screen}
	for _, width := range []int{40, 10, 1} {
		f.resize(width, 10)
		f.paint("title", "twelve chars\n表")
		assert.NotContains(t, s.out.String(), reverse)
		for text := range strings.SplitSeq(s.out.String(), "\r\n") {
			text = strings.NewReplacer(topLeft, "", eraseRight, "", eraseBelow, "").Replace(text)
			assert.LessOrEqual(t, columns(text), max(2, width))
		}
	}
}
