package repl

import (
	"context"
	"errors"
	"io"
)

// Interactive runs a session on a terminal until quit, the end of the input, or the end of ctx,
// whose cause it then returns. It only prints the errors of commands. It closes the editor.
func (s *Shell) Interactive(ctx context.Context, editor LineReader) error {
	defer editor.Close()
	// The editor waits for a key and ignores ctx.
	defer context.AfterFunc(ctx, func() { _ = editor.Close() })()
	s.mu.Lock()
	s.editor = editor
	s.mu.Unlock()
	if w := editor.Stdout(); w != nil {
		s.env.screen.redirect(w)
	}
	defer s.watch()()
	defer s.abandon()
	for {
		line, err := s.ask(editor)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case errors.Is(err, ErrInterrupted):
			continue
		case errors.Is(err, io.EOF):
			err = s.mayLeave()
		case err != nil:
			return err
		default:
			err = s.run(ctx, line)
		}
		var quit *quitError
		switch {
		case errors.As(err, &quit):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			s.complain(err)
		}
	}
}

func (s *Shell) watch() (stop func()) {
	s.mu.Lock()
	s.watching = true
	s.mu.Unlock()
	return s.env.op.Watch(s.printEvent)
}

func (s *Shell) watches() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watching
}

// ask reads one line. While it waits, the prompt shows the progress of transfers.
func (s *Shell) ask(editor LineReader) (string, error) {
	s.env.screen.setStatus("")
	s.mu.Lock()
	s.asking, s.early = true, false
	prompt := s.prompt()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.asking = false
		s.mu.Unlock()
	}()
	return editor.ReadLine(prompt)
}

// complain prints an error. For a usage error it adds the usage line.
func (s *Shell) complain(err error) {
	if _, before := errors.AsType[*printedError](err); before {
		return
	}
	text := fold(s.env.width(), err.Error())
	if errors.Is(err, ErrInterrupted) && (s.env.width() > 0 || s.env.interactive()) {
		text = "\n" + text // the terminal has printed ^C
	}
	if s.env.cfg.Color {
		text = "\x1b[31m" + text + "\x1b[0m"
	}
	var wrong *usageError
	if errors.As(err, &wrong) && wrong.use != "" {
		use := "usage: " + wrong.use // keeps an error in a script on one line
		if width := s.env.width(); width > 0 {
			use = fold(width, usageLines(min(width, textWidth), wrong.use))
		}
		text += "\n" + use
	}
	s.env.screen.talk(text)
}
