package repl

import (
	"bufio"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/files"
)

const historyLines = 1000

// TypedLine is a typed line with its number. Numbers start at 1.
type TypedLine struct {
	Number int    `json:"number"`
	Line   string `json:"line"`
}

// sessionHistory is the history of this session. It starts with the lines of the history file.
type sessionHistory struct {
	mu    sync.Mutex
	lines []TypedLine
	last  int // number of the last line
}

// load reads the history file if it can.
func (p *sessionHistory) load(path string) {
	f, err := files.Input(path)
	if err != nil {
		return
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, longestLine)
	for in.Scan() {
		p.add(in.Text())
	}
}

// add appends a line, unless the line is blank or repeats the previous one.
func (p *sessionHistory) add(line string) {
	line = strings.TrimSpace(line)
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.lines); line == "" || n > 0 && p.lines[n-1].Line == line {
		return
	}
	p.last++
	p.lines = append(p.lines, TypedLine{p.last, line})
	if len(p.lines) > historyLines {
		p.lines = p.lines[1:]
	}
}

func (p *sessionHistory) History() []TypedLine {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]TypedLine{}, p.lines...)
}

func historyCommand(s *Shell) *cobra.Command {
	return &cobra.Command{
		Use:   "history [N]",
		Short: "list typed lines, or the last N",
		Long: "List the lines typed in this session and in earlier sessions on this\n" +
			"machine, at any node, the newest last. The arrow keys and Ctrl-R find them\n" +
			"again. Lines of scripts are not kept.",
		RunE: func(c *cobra.Command, args []string) error {
			most := historyLines
			if len(args) > 0 {
				n, err := parseCount(c, args[0], 1, historyLines)
				if err != nil {
					return err
				}
				most = n
			}
			s.mu.Lock()
			editor := s.editor
			s.mu.Unlock()
			if editor == nil {
				if !s.env.json(c) {
					s.env.screen.talk("no history: the input is not a terminal")
				}
				return s.env.answer(c, []TypedLine{}, "")
			}
			list := editor.History()
			list = list[max(0, len(list)-most):]
			var b strings.Builder
			for _, l := range list {
				fmt.Fprintf(&b, "%5d  %s\n", l.Number, printable(l.Line))
			}
			return s.env.answer(c, list, b.String())
		},
	}
}
