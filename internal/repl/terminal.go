package repl

import (
	"bytes"
	"io"
	"slices"
	"sync"
	"unicode"

	"github.com/ergochat/readline"
)

// terminal stands between the editor and the terminal. The editor asks the terminal where the
// cursor is before each prompt and waits for the answer, for ever where none comes (a script that
// drives a pty, an editor's shell window). We know the answer: the first column, because we begin
// a fresh line ourselves.
//
// What is pasted the terminal marks (xterm's bracketed paste), so that it is text here and no keys:
// a tab in it is a blank and completes nothing, and what would steer the editor is left out. Its
// line ends are Enter.
type terminal struct {
	in  io.Reader
	out io.Writer

	mayStop func() bool // nil: never

	mu     sync.Mutex
	answer []byte // to a question, to be read before the next key
	ahead  int    // bytes to be read that were typed before the editor had the terminal

	turns turns

	// The rest is the reader's alone.
	keys    []byte // that were read, and wait for their turn
	partial []byte // what may become a mark
	pasting bool
	ended   bool // the last that was pasted was a \r
}

var (
	whereQuestion = []byte("\x1b[6n")
	whereAnswer   = []byte("\x1b[1;1R")
	pasteBegin    = []byte("\x1b[200~")
	pasteEnd      = []byte("\x1b[201~")
)

// What has the terminal mark pastes, and no more (xterm's ctlseqs).
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
	_, _ = io.WriteString(t.out, marks) // a terminal that is gone is found out by the prompt
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if bytes.Equal(p, whereQuestion) {
		t.answer = whereAnswer
		t.ahead = typedAhead(t.in) // the terminal is the editor's by now
		// Whatever was typed ahead was echoed here and will be shown again behind the prompt.
		_, err := io.WriteString(t.out, eraseLine)
		return len(p), err
	}
	return t.out.Write(p)
}

// Read gives a byte at a time, so that the editor reads again when it has done with a key, and then
// alone.
func (t *terminal) Read(p []byte) (int, error) {
	t.turns.wait()
	n, err := t.next(p[:min(1, len(p))])
	t.turns.begin()
	return n, err
}

// next waits for the next byte.
func (t *terminal) next(p []byte) (int, error) {
	t.mu.Lock()
	if len(t.answer) > 0 {
		n := copy(p, t.answer)
		t.answer = t.answer[n:]
		t.mu.Unlock()
		return n, nil
	}
	t.mu.Unlock()
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

// pressed gives a Ctrl-D back to who typed it before the prompt: the terminal, which was not the
// editor's then, has made a zero of it (Linux' n_tty).
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

// typed takes what came from the terminal. The beginning of a mark is kept until it is one or not:
// alone it is no key either.
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

// take passes a byte on to the editor, or what it means where it was pasted.
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
		// The editor takes it for the end of its list of completions or of its search where one is
		// open. Those end before, so that the line is cancelled whatever stands below it.
		t.keys = append(t.keys, readline.CharBell)
	}
	t.keys = append(t.keys, c)
}

// key is the editor's filter: a control character that is none of its keys would be taken for text
// and steer the terminal.
func (t *terminal) key(r rune) (rune, bool) {
	if r == readline.CharCtrlZ {
		if t.mayStop == nil || !t.mayStop() {
			return r, false // the editor would wait for ever to be woken
		}
		t.markPastes(false) // until the next prompt
		t.turns.wait()      // who stops the process may wait for somebody who writes
	}
	return r, r < 0 || !unicode.IsControl(r) || slices.Contains(editorKeys, r)
}

// editorKeys are the control characters that the editor knows.
var editorKeys = []rune{
	readline.CharLineStart, readline.CharBackward, readline.CharInterrupt, readline.CharEOT,
	readline.CharLineEnd, readline.CharForward, readline.CharBell, readline.CharCtrlH,
	readline.CharTab, readline.CharCtrlJ, readline.CharKill, readline.CharCtrlL,
	readline.CharEnter, readline.CharNext, readline.CharPrev, readline.CharBckSearch,
	readline.CharFwdSearch, readline.CharTranspose, readline.CharCtrlU, readline.CharCtrlW,
	readline.CharCtrlY, readline.CharCtrlZ, readline.CharCtrl_, readline.CharBackspace,
}
