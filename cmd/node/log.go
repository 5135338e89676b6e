package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/repl"
)

type logFlags struct {
	level  slog.LevelVar
	format string
}

func (l *logFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.TextVar(&l.level, "log-level", &slog.LevelVar{},
		"minimum `LEVEL` to log: debug, info, warn, error; `set log.level` changes it later")
	f.StringVar(&l.format, "log-format", "text",
		"with --daemon: log `FORMAT`, text or json, one record a line")
	repl.CompleteFlag(c, "log-level", "debug", "info", "warn", "error")
	repl.Choose(c, "log-format", "text", "json")
}

// newLog returns the log of a daemon, with one line for each event. In the journal it has no
// timestamps, because the journal adds its own. The name is empty if the file has not been read.
func (l *logFlags) newLog(to io.Writer, name string) *slog.Logger {
	options := slog.HandlerOptions{Level: &l.level}
	to = boundLog(to, maxLog)
	if os.Getenv("JOURNAL_STREAM") != "" {
		options.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
	}
	var handler slog.Handler = slog.NewTextHandler(to, &options)
	if l.format == "json" {
		handler = slog.NewJSONHandler(to, &options)
	}
	handler = &limited{handler, &recordCounts{seen: map[string]int{}}}
	if name == "" {
		return slog.New(handler)
	}
	return slog.New(handler).With("node", name)
}

func mistakeAttrs(m *lnx.Error) []any {
	return []any{
		"file", m.File, "line", m.Line, "column", m.Col, "text", m.Text, "problem", m.Msg,
		"expected", m.Want,
	}
}

// messageWriter prints messages as lines of text, or as records if the log is JSON.
type messageWriter struct {
	lines io.Writer
	log   *slog.Logger // log of a daemon; nil: print lines of text
}

// say prints a text, or logs a record even if level is below the log's level.
func (v *messageWriter) say(text string, level slog.Level, msg string, attrs ...any) {
	if v.log == nil {
		_, _ = fmt.Fprintln(v.lines, text)
		return
	}
	r := slog.NewRecord(time.Now(), level, msg, 0)
	r.Add(attrs...)
	_ = v.log.Handler().Handle(context.Background(), r) // there is nowhere to report a failed write
}

func (v *messageWriter) remarks(c *lnx.Config) {
	for _, note := range c.Notes {
		v.say(note.Error(), slog.LevelWarn, "note", mistakeAttrs(note)...)
	}
	for _, line := range tunAdvice(c) {
		v.say(line, slog.LevelWarn, "advice", "text", line)
	}
}

// failed logs an error and marks it as printed. Without a log it returns err unchanged.
func (v *messageWriter) failed(c *cobra.Command, err error) error {
	if v.log == nil || err == nil {
		return err
	}
	const msg = "failed"
	if mistakes, ok := errors.AsType[lnx.Errors](err); ok {
		for _, m := range mistakes {
			v.say("", slog.LevelError, msg, mistakeAttrs(m)...)
		}
	} else if explain(c, err) != "" {
		v.say("", slog.LevelError, msg, "problem", err.Error())
	}
	return printedError{err}
}
