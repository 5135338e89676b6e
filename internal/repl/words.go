package repl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

var errQuote = errors.New("unclosed quote")

// arguments splits a line for the command tree. A command that sends text gets the rest of the line
// as typed, as one argument. All other commands get words.
func arguments(root *cobra.Command, line string) ([]string, error) {
	line = strings.TrimRight(line, "\r\n")
	first, rest := cut(strings.TrimLeft(line, " \t"))
	if first == "" || first[0] == '#' {
		return nil, nil
	}
	c := lookup(root, first)
	if c == nil {
		if _, err := split(line); err != nil {
			return nil, &usageError{cause: err}
		}
		return nil, unknown(root, first)
	}
	if !c.DisableFlagParsing {
		words, err := split(rest)
		if err != nil {
			return nil, wrong(c, "%w", err)
		}
		return append([]string{c.Name()}, words...), nil
	}
	switch strings.TrimSpace(rest) {
	case "-h", "--help":
		return []string{"help", c.Name()}, nil
	}
	return []string{c.Name(), rest}, nil
}

// parted is like arguments, for words that a system shell has split. A single word that contains
// spaces is a quoted line, as for node run -c. If a command takes the rest of the line as text, a
// final --json is not part of the text.
func parted(root *cobra.Command, words []string) ([]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	if len(words) == 1 && strings.ContainsAny(words[0], " \t") {
		return arguments(root, words[0])
	}
	c := lookup(root, words[0])
	switch {
	case c == nil:
		return nil, unknown(root, words[0])
	case !c.DisableFlagParsing:
		return append([]string{c.Name()}, words[1:]...), nil
	case len(words) == 2 && (words[1] == "-h" || words[1] == "--help"):
		return []string{"help", c.Name()}, nil
	}
	if last := len(words) - 1; words[last] == jsonWord {
		words = append([]string{words[0], jsonWord}, words[1:last]...)
	}
	return []string{c.Name(), strings.Join(words[1:], " ")}, nil
}

// cut splits off the first word of a text. It removes one space after the word. Further spaces
// belong to the rest.
func cut(text string) (word, rest string) {
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		return text[:i], text[i+1:]
	}
	return text, ""
}

// split splits a line like a shell: spaces separate words, quotes join them, and # starts a
// comment. A backslash escapes a space, a quote, # and a backslash. Before other characters it is a
// normal character, for Windows paths.
func split(text string) ([]string, error) {
	var (
		words []string
		word  strings.Builder
		open  bool // a word has begun at this position
		quote byte // open quote; 0: no quote
		begun int  // position where the open quote starts
	)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(text) && escapes(quote, text[i+1]):
			i++
			word.WriteByte(text[i])
			open = true
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, open, begun = c, true, i
		case c == ' ' || c == '\t':
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		case c == '#' && !open:
			return words, nil
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("%w: %s", errQuote, printable(text[begun:]))
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}

func escapes(quote, c byte) bool {
	if quote == '"' {
		return c == '"' || c == '\\'
	}
	return strings.IndexByte(` "'#\`, c) >= 0
}
