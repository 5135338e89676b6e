//go:build !wasm

package repl

import (
	"bytes"
	"io"
	"slices"
	"sync"
	"unicode"

	"github.com/ergochat/readline"
)

// terminal is between the editor and the terminal. Before each prompt the editor asks the terminal
// for the cursor's position, and would wait for ever if it does not answer (a script with a pty, an
// editor's shell window). The answer is known: the first column, because we start a new line.
//
// The terminal marks pasted text (xterm's bracketed paste), so that it is text here and not keys: a
// tab in it is a blank and completes nothing, control characters are dropped, and line ends are
// Enter.
type terminal struct {
	in  io.Reader
	out io.Writer

	mayStop func() bool // nil: never

	mu     sync.Mutex
	answer []byte // answer to the editor's question, to be read before the next key
	ahead  int    // bytes that were typed before the editor had the terminal

	turns turns

	// The reader owns the fields below.
	keys    []byte // keys that the editor has not read yet
	partial []byte // possible start of a mark
	pasting bool
	ended   bool // the last pasted character was a \r
}

var (
	whereQuestion = []byte("\x1b[6n")
	whereAnswer   = []byte("\x1b[1;1R")
	pasteBegin    = []byte("\x1b[200~")
	pasteEnd      = []byte("\x1b[201~")
)

// Control sequences that turn the marks of pasted text on and off (xterm's ctlseqs).
const (
	marksOn  = "\x1b[?2004h"
	marksOff = "\x1b[?2004l"
)

func (t *terminal) markPastes(on bool) {
	marks := marksOff
	if on {
		marks = marksOn
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = io.WriteString(t.out, marks) // if the terminal is gone, the prompt fails
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if bytes.Equal(p, whereQuestion) {
		t.answer = whereAnswer
		t.ahead = typedAhead(t.in) // the editor has the terminal now
		// Text that was typed ahead was echoed here and is shown again after the prompt.
		_, err := io.WriteString(t.out, eraseLine)
		return len(p), err
	}
	return t.out.Write(p)
}

// Read returns one byte, so that the editor processes each key before it reads the next.
func (t *terminal) Read(p []byte) (int, error) {
	t.turns.wait()
	p = p[:min(1, len(p))]
	if n := t.answered(p); n > 0 {
		// Writers wait for the editor's lock, which it holds until it has the answer.
		return n, nil
	}
	n, err := t.next(p)
	t.turns.begin()
	return n, err
}

func (t *terminal) answered(p []byte) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := copy(p, t.answer)
	t.answer = t.answer[n:]
	return n
}

func (t *terminal) next(p []byte) (int, error) {
	var typed [1024]byte
	for len(t.keys) == 0 {
		n, err := t.in.Read(typed[:])
		t.typed(t.pressed(typed[:n]))
		if err != nil && len(t.keys) == 0 {
			return 0, err
		}
	}
	n := copy(p, t.keys)
	t.keys = t.keys[n:]
	return n, nil
}

// pressed restores a Ctrl-D that was typed before the prompt, which Linux's n_tty has converted to
// a zero.
func (t *terminal) pressed(text []byte) []byte {
	t.mu.Lock()
	ahead := min(t.ahead, len(text))
	t.ahead -= ahead
	t.mu.Unlock()
	for i, c := range text[:ahead] {
		if c == 0 {
			text[i] = readline.CharEOT
		}
	}
	return text
}

// typed processes input of the terminal. A possible start of a mark is kept until it is complete.
func (t *terminal) typed(text []byte) {
	for _, c := range text {
		mark := pasteBegin
		if t.pasting {
			mark = pasteEnd
		}
		if len(t.partial) > 0 && c != mark[len(t.partial)] {
			for _, key := range t.partial {
				t.take(key)
			}
			t.partial = nil
		}
		if c != mark[len(t.partial)] {
			t.take(c)
			continue
		}
		t.partial = append(t.partial, c)
		if len(t.partial) == len(mark) {
			t.pasting, t.ended, t.partial = !t.pasting, false, nil
		}
	}
}

// take passes a byte to the editor, or its meaning if it was pasted.
func (t *terminal) take(c byte) {
	ended := t.ended
	t.ended = t.pasting && c == '\r'
	switch {
	case !t.pasting:
	case c == '\n' && ended:
		return
	case c == '\n':
		c = '\r'
	case c == '\t':
		c = ' '
	case c < ' ' && c != '\r', c == 0x7f:
		return
	}
	if c == readline.CharInterrupt {
		// An open list of completions or search would consume this key. They are closed first, so
		// that the line is canceled in any case.
		t.keys = append(t.keys, readline.CharBell)
	}
	t.keys = append(t.keys, c)
}

// key is the editor's filter. The editor would insert unknown control characters as text, and print
// them to the terminal.
func (t *terminal) key(r rune) (rune, bool) {
	if r == readline.CharCtrlZ {
		if t.mayStop == nil || !t.mayStop() {
			return r, false // the editor would wait to be woken
		}
		t.markPastes(false) // until the next prompt
		t.turns.wait()      // stopping must not interrupt a write
	}
	return r, r < 0 || !unicode.IsControl(r) || slices.Contains(editorKeys, r)
}

var editorKeys = []rune{
	readline.CharLineStart, readline.CharBackward, readline.CharInterrupt, readline.CharEOT,
	readline.CharLineEnd, readline.CharForward, readline.CharBell, readline.CharCtrlH,
	readline.CharTab, readline.CharCtrlJ, readline.CharKill, readline.CharCtrlL,
	readline.CharEnter, readline.CharNext, readline.CharPrev, readline.CharBckSearch,
	readline.CharFwdSearch, readline.CharTranspose, readline.CharCtrlU, readline.CharCtrlW,
	readline.CharCtrlY, readline.CharCtrlZ, readline.CharCtrl_, readline.CharBackspace,
}
