package netctl

import (
	"bytes"
	"io"
	"regexp"
	"strings"

	"github.com/tidepool-net/tidepool/internal/files"
)

const (
	complaintLines = 20      // of a node that could not start
	deathLines     = 5       // of one that is dead
	crashLines     = 8       // of one that crashed: why, and where
	logTail        = 1 << 20 // bytes, in which the dump of a crash has room
)

// words are what a node's log tells of its end.
type words struct {
	lines   []string
	crashed bool // they are where the dump of a crash begins
}

// crashes is how a dump of Go begins, and logged how a line of the log does.
var (
	crashes = regexp.MustCompile(`(?m)^(panic|fatal error|SIG[A-Z]+): `)
	logged  = regexp.MustCompile(`(?m)^(time=|\{"time":)`)
)

// lastWords are the last lines of a node's log, of what was written behind so many bytes. Of a
// crash they are the first of the dump: what follows are goroutines and registers, and not why.
func (p process) lastWords(most int, behind int64) words {
	f, _, err := files.Machine().Read(p.log())
	if err != nil {
		return words{}
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		if behind > end { // the node has shortened its log
			behind = 0
		}
		_, _ = f.Seek(max(0, behind, end-logTail), io.SeekStart)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return words{}
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return words{}
	}
	run := 0 // where what came behind the last line of the log begins
	if at := logged.FindAllIndex(text, -1); len(at) > 0 {
		run = at[len(at)-1][0]
	}
	if at := crashes.FindIndex(text[run:]); at != nil {
		lines := strings.Split(string(text[run+at[0]:]), "\n")
		return words{lines: lines[:min(crashLines, len(lines))], crashed: true}
	}
	lines := strings.Split(string(text), "\n")
	return words{lines: lines[max(0, len(lines)-most):]}
}
