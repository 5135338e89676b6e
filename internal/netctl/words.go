package netctl

import (
	"bytes"
	"io"
	"regexp"
	"strings"

	"github.com/tidepool-net/tidepool/internal/files"
)

const (
	complaintLines = 20      // number of log lines of a node that could not start
	deathLines     = 5       // number of log lines of a node that is not running
	crashLines     = 8       // number of lines of a crashed node's dump: the reason and the place
	logTail        = 1 << 20 // size in bytes, enough for a whole dump
)

// logLines are the last lines of a node's log.
type logLines struct {
	lines   []string
	crashed bool // the lines are the start of a dump
}

// crashes matches the start of a Go dump. logged matches the start of a log record.
var (
	crashes = regexp.MustCompile(`(?m)^(panic|fatal error|SIG[A-Z]+): `)
	logged  = regexp.MustCompile(`(?m)^(time=|\{"time":)`)
)

// lastLogLines returns the last lines of a node's log after an offset. After a crash it returns the
// first lines of the dump, because goroutines and registers follow them.
func (p process) lastLogLines(most int, behind int64) logLines {
	f, _, err := files.Machine().Read(p.log())
	if err != nil {
		return logLines{}
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		if behind > end { // the node has shortened its log since the offset was read
			behind = 0
		}
		_, _ = f.Seek(max(0, behind, end-logTail), io.SeekStart)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return logLines{}
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return logLines{}
	}
	run := 0 // start of the text after the last log record
	if at := logged.FindAllIndex(text, -1); len(at) > 0 {
		run = at[len(at)-1][0]
	}
	if at := crashes.FindIndex(text[run:]); at != nil {
		lines := strings.Split(string(text[run+at[0]:]), "\n")
		return logLines{lines: lines[:min(crashLines, len(lines))], crashed: true}
	}
	lines := strings.Split(string(text), "\n")
	return logLines{lines: lines[max(0, len(lines)-most):]}
}
