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

// terminal is a layer between the editor and the terminal. Before each prompt the editor queries
// the position of the cursor, and waits for the answer. Some terminals never answer, such as a pty
// of a script or the shell window of Emacs. The layer itself answers, because the cursor is always
// in the first column: each prompt starts a new line.
//
// The terminal marks pasted text (xterm's bracketed paste). The layer passes it on as text and not
// as keys: it replaces a tab by a space, so that nothing is completed, drops control characters,
// and converts line ends to Enter.
type terminal struct {
	in  io.Reader
	out io.Writer

	mayStop func() bool // reports whether Ctrl-Z may stop the process; nil: never

	mu     sync.Mutex
	answer []byte // answer to the editor's query, read before the next key
	ahead  int    // number of bytes typed before the editor had the terminal

	turns turns

	// Only the reading goroutine uses the fields below.
	keys    []byte // keys that the editor has not read yet
	partial []byte // bytes that may be the start of a mark
	pasting bool
	ended   bool // the last pasted character was a \r
}

var (
	whereQuestion = []byte("\x1b[6n")
	whereAnswer   = []byte("\x1b[1;1R")
	pasteBegin    = []byte("\x1b[200~")
	pasteEnd      = []byte("\x1b[201~")
)

// These control sequences turn the marks of pasted text on and off (xterm's ctlseqs).
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
	_, _ = io.WriteString(t.out, marks) // if the terminal is closed, writing the prompt fails
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if bytes.Equal(p, whereQuestion) {
		t.answer = whereAnswer
		t.ahead = typedAhead(t.in) // from now on the editor reads the terminal
		// Text that was typed ahead was echoed here. The editor shows it again after the prompt.
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
		// Return at once: the editor holds a lock until then, and writers wait for that lock.
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

// pressed restores a Ctrl-D that was typed before the prompt. Linux's n_tty has converted it to a
// zero byte.
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

// typed processes input from the terminal. It keeps an incomplete mark until the next input.
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

// take passes one byte to the editor. It converts or drops pasted control characters.
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
		// An open list of completions or an open search would consume Ctrl-C. Close them first, so
		// that Ctrl-C always cancels the line.
		t.keys = append(t.keys, readline.CharBell)
	}
	t.keys = append(t.keys, c)
}

// key is the filter of the editor's keys. Without it the editor would insert unknown control
// characters as text and print them to the terminal.
func (t *terminal) key(r rune) (rune, bool) {
	if r == readline.CharCtrlZ {
		if t.mayStop == nil || !t.mayStop() {
			return r, false // the editor would wait for SIGCONT
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
