package repl

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// screen is the session's output. It writes whole lines and keeps the status line below them.
type screen struct {
	mu       sync.Mutex
	out, err io.Writer
	status   string // last line of the terminal, without a newline; may be empty
	failure  error  // the first error of writing output
	held     bool   // a command paints the whole screen
	waiting  []held // texts to write after that command
}

type held struct {
	to   io.Writer
	text string
}

// maxHeld limits the number of waiting texts. Texts beyond it are lost.
const maxHeld = 1000

// hold writes text, and then delays all other output until release.
func (s *screen) hold(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(s.out, text)
	s.held = true
}

func (s *screen) release(text string) {
	s.mu.Lock()
	waiting := s.waiting
	s.held, s.waiting = false, nil
	s.put(s.out, text)
	s.mu.Unlock()
	for _, w := range waiting {
		s.write(w.to, w.text)
	}
}

// suspend calls stop while no text is being written. If a command paints the screen, the terminal
// shows the normal screen during the call.
func (s *screen) suspend(stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		s.put(s.out, firstScreen)
		defer s.put(s.out, otherScreen)
	}
	stop()
}

func (s *screen) paint(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(s.out, text)
}

const eraseLine = "\r\x1b[K"

func (s *screen) data(text string) { s.write(s.out, text) }

func (s *screen) talk(text string) { s.write(s.err, text) }

func (s *screen) write(w io.Writer, text string) {
	if text == "" {
		return
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		if len(s.waiting) < maxHeld {
			s.waiting = append(s.waiting, held{w, text})
		}
		return
	}
	if s.status != "" {
		s.put(s.err, eraseLine)
		defer s.put(s.err, s.status)
	}
	s.put(w, text)
}

// put writes text. There is nowhere to report a failed write to standard error.
func (s *screen) put(w io.Writer, text string) {
	_, err := io.WriteString(w, text)
	if err != nil && s.failure == nil && w == s.out {
		s.failure = err
	}
}

func (s *screen) raw(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.out.Write(b)
	if err != nil && s.failure == nil {
		s.failure = err
	}
	return err
}

func (s *screen) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// setStatus replaces the status line. An empty text removes it.
func (s *screen) setStatus(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text != s.status {
		if !s.held {
			s.put(s.err, eraseLine+text)
		}
		s.status = text
	}
}

func (s *screen) redirect(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out, s.err = w, w
}

// printable escapes control characters: text from the network must not control the terminal.
func printable(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, isControl) < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1, r < utf8.RuneSelf && isControl(r):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case isControl(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

func isControl(r rune) bool { return !unicode.IsPrint(r) && r != '\t' }
