package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/repl"
)

type console struct {
	in       io.Reader
	out, err io.Writer
	typed    bool // the input is a terminal
	shown    bool // the output is a terminal
	dumb     bool // a terminal without cursor control
	color    bool
	plain    bool // print only ASCII: the terminal is dumb, or the locale is not UTF-8
	// height returns the current height of out's terminal, and width the width of err's terminal.
	// They are nil if the stream is not a terminal, or if the terminal is dumb.
	height, width func() int
	endless       func() // repl.Config's Endless, set by untilReaderGone; may be nil
}

func newConsole(in io.Reader, out, err io.Writer) *console {
	_, typed := terminalSize(in)
	_, shown := terminalSize(out)
	t := &console{
		in: in, out: out, err: err, typed: typed, shown: shown,
		dumb: os.Getenv("TERM") == "dumb",
	}
	t.color = shown && !t.dumb && os.Getenv("NO_COLOR") == ""
	if _, ok := terminalSize(err); ok && !t.dumb {
		t.width = func() int { width, _ := terminalSize(err); return width }
	}
	if f, ok := out.(*os.File); ok && shown && !t.dumb {
		t.height = func() int { return terminalHeight(f) }
	}
	t.plain = t.dumb || plainLocale(os.Getenv)
	return t
}

// untilReaderGone returns a context for commands that print until they are stopped. The context
// ends when the output's reader is gone. SIGPIPE would arrive only with the next write.
func (t *console) untilReaderGone(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var once sync.Once
	t.endless = func() {
		once.Do(func() {
			go func() {
				if f, ok := t.out.(*os.File); ok && unread(ctx, f) {
					cancel(signalError{syscall.SIGPIPE})
				}
			}()
		})
	}
	return ctx, func() { cancel(nil) }
}

func (t *console) keyboard() *os.File {
	if f, ok := t.in.(*os.File); ok && t.typed {
		return f
	}
	return nil
}

// plainLocale reports whether the locale's character set is not UTF-8 (setlocale(3)). If no locale
// is set, it assumes UTF-8.
func plainLocale(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			return !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8")
		}
	}
	return false
}

// terminalSize returns the terminal's width; false if the stream is not a terminal.
func terminalSize(stream any) (width int, ok bool) {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width, true
	}
	return 80, true
}

func terminalHeight(f *os.File) int {
	if _, height, err := term.GetSize(int(f.Fd())); err == nil && height > 0 {
		return height
	}
	return 24
}

// editor returns a line reader, with editing and history if the terminal supports them.
func (t *console) editor(complete func(string) []string) (repl.LineReader, error) {
	switch {
	case t.dumb:
		return repl.NewPlainReader(t.in, t.out), nil
	case !t.shown:
		return repl.NewPlainReader(t.in, t.err), nil
	}
	return repl.NewEditor(repl.EditorConfig{
		In: t.in, Out: t.out, Complete: complete, History: historyFile(), MayStop: mayStop,
	})
}

// historyFile returns the path of the shell's history file, and creates the file with mode 0600. It
// returns "" if there is no history.
func historyFile() string {
	folder, err := stateFolder()
	if err != nil {
		return ""
	}
	folder = filepath.Join(folder, "tidepool")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return ""
	}
	path := filepath.Join(folder, "history")
	f, err := files.Machine().Edit(path, 0o600)
	if err != nil || f.Close() != nil {
		return ""
	}
	return path
}

var errNoHome = errors.New("no folder for the history of commands: set HOME")

// stateFolder returns the user's directory for state that programs keep.
func stateFolder() (string, error) {
	if folder := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(folder) {
		return folder, nil
	}
	if runtime.GOOS == "windows" {
		return os.UserCacheDir() // on Windows, %LocalAppData%
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return "", errNoHome
	}
	return filepath.Join(home, ".local", "state"), nil
}
