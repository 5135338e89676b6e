package repl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
)

// longestLine is the maximum length of a line in a script.
const longestLine = 1 << 20

// lineError is an error with the position of its line in a script.
type lineError struct {
	file  string
	line  int
	cause error
}

func (e *lineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.file, e.line, e.cause) }
func (e *lineError) Unwrap() error { return e.cause }

// Script runs the lines of r, and then waits for their transfers. It stops at the first error,
// unless Config.KeepGoing is set. It prints each error of a line with its position and returns the
// last error. If ctx ends, it returns the context's cause.
func (s *Shell) Script(ctx context.Context, name string, r io.Reader) error {
	defer s.watch()()
	defer s.abandon()
	defer s.env.screen.setStatus("")
	err := s.lines(ctx, name, newSource(r))
	if quit, ok := errors.AsType[*quitError](err); ok {
		return quit.last
	}
	if err == nil || s.env.cfg.KeepGoing {
		if failure := s.await(ctx); failure != nil && ctx.Err() == nil {
			s.complain(failure)
			err = failure
		}
	}
	if ctx.Err() != nil {
		s.printHalted(err)
		return context.Cause(ctx)
	}
	return err
}

// Command runs one command that is already split into words, and then waits for its transfers. It
// prints errors but no events. If ctx ends, it returns the context's cause.
func (s *Shell) Command(ctx context.Context, words ...string) error {
	defer s.abandon()
	defer s.env.screen.setStatus("")
	s.mu.Lock()
	s.alone = true
	s.mu.Unlock()
	asJSON := s.env.cfg.JSON || AsksJSON(words)
	err := s.execute(ctx, asJSON, func(root *cobra.Command) ([]string, error) {
		return parted(root, words)
	})
	if quit, ok := errors.AsType[*quitError](err); ok {
		err = quit.last
	}
	if err == nil {
		err = s.await(ctx)
	}
	if ctx.Err() != nil {
		s.env.screen.setStatus("")
		s.printHalted(err)
		return context.Cause(ctx)
	}
	if failure := s.env.screen.failed(); err == nil && failure != nil {
		err = fmt.Errorf("writing the answer: %w", failure)
	}
	if err != nil {
		s.complain(err)
	}
	return err
}

// printHalted prints the progress of a command that was stopped when the session ended.
func (s *Shell) printHalted(err error) {
	if errors.Is(err, control.ErrStopped) {
		s.complain(&interruption{err})
	}
}

func (s *Shell) single() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alone
}

// lines runs lines until one fails. With Config.KeepGoing it runs all lines. It prints errors and
// returns the last one.
func (s *Shell) lines(ctx context.Context, name string, src *source) error {
	var last error
	for number := 1; ; number++ {
		line, err := src.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return last
		case err == nil:
			err = s.run(ctx, line)
		}
		var (
			quit    *quitError
			printed *printedError
		)
		switch {
		case err == nil:
			continue
		case errors.As(err, &quit):
			if quit.last == nil {
				quit.last = last
			}
			return quit
		case errors.Is(err, ErrInterrupted) || ctx.Err() != nil:
			return err
		case !errors.As(err, &printed):
			err = &lineError{file: name, line: number, cause: err}
			s.complain(err)
			err = &printedError{err}
		}
		last = err
		if !s.env.cfg.KeepGoing || src.ended {
			return last
		}
	}
}

func sourceFile(s *Shell, c *cobra.Command, path string) error {
	s.mu.Lock()
	s.depth++
	deep := s.depth
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.depth--
		s.mu.Unlock()
	}()
	if deep > maxDepth {
		return failed(c, fmt.Errorf("%s: more than %d nested `source` commands", path, maxDepth))
	}
	f, err := files.Of(c.Context()).Input(path)
	if err != nil {
		return failed(c, err)
	}
	defer f.Close()
	return s.lines(c.Context(), path, newSource(f))
}

// source reads lines in a goroutine, because a read from standard input cannot be interrupted.
type source struct {
	lines chan string
	err   error // why reading failed; valid once lines is closed
	ended bool
}

func newSource(r io.Reader) *source {
	src := &source{lines: make(chan string)}
	go src.read(r)
	return src
}

func (src *source) read(r io.Reader) {
	defer close(src.lines)
	in := bufio.NewScanner(r)
	in.Buffer(nil, longestLine)
	for in.Scan() {
		src.lines <- in.Text()
	}
	src.err = in.Err()
	if errors.Is(src.err, bufio.ErrTooLong) {
		src.err = fmt.Errorf("the line is longer than %d bytes", longestLine)
	}
}

func (src *source) next(ctx context.Context) (string, error) {
	select {
	case line, ok := <-src.lines:
		if ok {
			return line, nil
		}
		src.ended = true
		if src.err != nil {
			return "", src.err
		}
		return "", io.EOF
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
