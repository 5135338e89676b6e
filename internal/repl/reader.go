package repl

import (
	"cmp"
	"io"
	"sync"
)

// LineReader reads lines from the user.
type LineReader interface {
	// ReadLine shows the prompt and returns the typed line. It returns ErrInterrupted after Ctrl-C,
	// and io.EOF after Ctrl-D, at the end of the input, or after Close.
	ReadLine(prompt string) (string, error)
	// SetPrompt replaces the prompt, even while it is shown.
	SetPrompt(prompt string)
	// Stdout returns a writer that keeps the prompt and the partial line below its output. If it
	// returns nil, the session writes to its own output.
	Stdout() io.Writer
	// History returns the typed lines, oldest first, including the one just returned.
	History() []TypedLine
	// Close makes a waiting ReadLine return. It may be called twice.
	Close() error
}

// NewPlainReader returns a LineReader that prints the prompt and reads lines without editing.
func NewPlainReader(in io.Reader, out io.Writer) LineReader {
	p := &plainReader{out: out, closed: make(chan struct{})}
	p.src = newSource(in)
	return p
}

type plainReader struct {
	sessionHistory

	out    io.Writer
	src    *source
	once   sync.Once
	closed chan struct{}
}

func (p *plainReader) ReadLine(prompt string) (string, error) {
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
	_, err := io.WriteString(p.out, "\n") // ends the line of the prompt
	return "", cmp.Or(err, io.EOF)
}

func (p *plainReader) SetPrompt(string)  {}
func (p *plainReader) Stdout() io.Writer { return nil }

func (p *plainReader) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}
