//go:build !wasm

package repl

import (
	"errors"
	"io"
	"strings"

	"github.com/ergochat/readline"
)

// EditorConfig configures NewEditor.
type EditorConfig struct {
	In       io.Reader
	Out      io.Writer
	History  string                     // path of the history file; empty: no history
	Complete func(line string) []string // function like Shell.Complete; nil: no completion
	MayStop  func() bool                // reports whether Ctrl-Z may stop the process; nil: never
}

// NewEditor returns a LineReader with editing, history and completion for a terminal.
func NewEditor(cfg EditorConfig) (LineReader, error) {
	t := &terminal{in: cfg.In, out: cfg.Out, mayStop: cfg.MayStop}
	rc := &readline.Config{
		HistoryFile:            cfg.History,
		HistoryLimit:           historyLines,
		DisableAutoSaveHistory: true,
		HistorySearchFold:      true,
		Undo:                   true,
		InterruptPrompt:        "^C",
		EOFPrompt:              "\n",
		Stdin:                  t,
		Stdout:                 t,
		Stderr:                 t,
		FuncIsTerminal:         func() bool { return true },
		FuncFilterInputRune:    t.key,
	}
	if cfg.Complete != nil {
		rc.AutoComplete = tab(cfg.Complete)
	}
	rl, err := readline.NewFromConfig(rc)
	if err != nil {
		return nil, err
	}
	e := &editor{rl: rl, t: t}
	e.load(cfg.History)
	return e, nil
}

type editor struct {
	sessionHistory

	rl *readline.Instance
	t  *terminal
}

func (e *editor) ReadLine(prompt string) (string, error) {
	e.rl.SetPrompt(prompt)
	e.t.markPastes(true)
	defer e.t.markPastes(false)
	e.t.turns.edit(true)
	defer e.t.turns.edit(false)
	line, err := e.rl.ReadLine()
	if errors.Is(err, readline.ErrInterrupt) {
		return "", ErrInterrupted
	}
	if err == nil && strings.TrimSpace(line) != "" {
		// The line still runs if the history cannot be written.
		_ = e.rl.SaveToHistory(line)
		e.add(line)
	}
	return line, err
}

func (e *editor) SetPrompt(prompt string) {
	e.rl.SetPrompt(prompt)
	// The editor's own Refresh would discard its list of completions and its search text.
	_, _ = e.Stdout().Write(nil)
}

func (e *editor) Stdout() io.Writer { return turnWriter{e.rl.Stdout(), &e.t.turns} }
func (e *editor) Close() error      { return e.rl.Close() }

type tab func(line string) []string

// Do implements readline.AutoCompleter. It returns what each completion adds to the current word,
// and the length of that word.
func (complete tab) Do(line []rune, pos int) (tails [][]rune, length int) {
	text := string(line[:pos])
	last := text[lastWord(text):]
	for _, word := range complete(text) {
		tail := strings.TrimPrefix(word, last)
		if !strings.HasSuffix(word, "/") {
			tail += " "
		}
		tails = append(tails, []rune(tail))
	}
	return tails, len([]rune(last))
}
