package repl

import (
	"cmp"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/ergochat/readline"
)

// LineReader asks somebody for lines.
type LineReader interface {
	// ReadLine shows the prompt and returns the line that was typed. ErrInterrupted: Ctrl-C;
	// io.EOF: Ctrl-D, the end of the input, or Close.
	ReadLine(prompt string) (string, error)
	// SetPrompt replaces the prompt, at once if it stands on the screen.
	SetPrompt(prompt string)
	// Stdout is a writer that keeps the prompt and the half-typed line below what is written.
	// Nil: there is none, and the session writes where it did.
	Stdout() io.Writer
	// History is what was typed, the newest last, with the line that ReadLine has returned.
	History() []TypedLine
	// Close ends a ReadLine that waits; it may be called twice.
	Close() error
}

// EditorConfig is what NewEditor needs.
type EditorConfig struct {
	In       io.Reader
	Out      io.Writer
	History  string                     // the file that keeps it; empty: none
	Complete func(line string) []string // as Shell.Complete; nil: none
	MayStop  func() bool                // Ctrl-Z stops the process then; nil: never
}

// NewEditor is a LineReader with editing, history and completion, for a terminal as standard input.
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
	past

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
		// A history that cannot be written is no reason to stop.
		_ = e.rl.SaveToHistory(line)
		e.add(line)
	}
	return line, err
}

func (e *editor) SetPrompt(prompt string) {
	e.rl.SetPrompt(prompt)
	// Its Refresh forgets the list of completions and the word that is searched for.
	_, _ = e.Stdout().Write(nil)
}

func (e *editor) Stdout() io.Writer { return between{e.rl.Stdout(), &e.t.turns} }
func (e *editor) Close() error      { return e.rl.Close() }

// tab gives the editor completion by words.
type tab func(line string) []string

// Do is part of readline.AutoCompleter: it returns what may follow the part that is there, and how
// long that part is.
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

// NewPlainReader is a LineReader for an input that cannot be edited: it prints the prompt to out
// and takes lines as they come.
func NewPlainReader(in io.Reader, out io.Writer) LineReader {
	p := &plain{out: out, closed: make(chan struct{})}
	p.src = newSource(in)
	return p
}

type plain struct {
	past

	out    io.Writer
	src    *source
	once   sync.Once
	closed chan struct{}
}

func (p *plain) ReadLine(prompt string) (string, error) {
	if _, err := io.WriteString(p.out, prompt); err != nil {
		return "", err
	}
	select {
	case line, ok := <-p.src.lines:
		if ok {
			p.add(line)
			return line, nil
		}
	case <-p.closed:
	}
	_, err := io.WriteString(p.out, "\n") // nobody has pressed Enter behind the prompt
	return "", cmp.Or(err, io.EOF)
}

func (p *plain) SetPrompt(string)  {}
func (p *plain) Stdout() io.Writer { return nil }

func (p *plain) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}
