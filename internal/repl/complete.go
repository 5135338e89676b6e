package repl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidepool-net/tidepool/internal/control"
)

// completer lists the words for one position of a line. The prefix only saves work.
type completer func(ctx context.Context, prefix string) []string

// patience is how long Tab waits for the node's answer.
const patience = 500 * time.Millisecond

// Complete lists the words that can replace the line's last, unfinished word. A directory, which is
// itself unfinished, ends in a slash.
func (s *Shell) Complete(line string) []string {
	head, last := line[:lastWord(line)], line[lastWord(line):]
	words, err := split(head)
	root := s.tree()
	if err != nil || len(words) > 0 && lookup(root, words[0]) == nil {
		return nil
	}
	if !FlagsFit(root, words) {
		return nil
	}
	root = s.tree() // the flags of the other tree are set
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// Cobra's completion for shells produces the list: it knows commands, flags and
	// ValidArgsFunction.
	var out bytes.Buffer
	root.SetOut(&out)
	ask := []string{cobra.ShellCompNoDescRequestCmd}
	root.SetArgs(slices.Concat(ask, words, []string{unescape(last)}))
	if err := root.ExecuteContext(ctx); err != nil {
		return nil
	}
	var found []string
	for candidate := range strings.Lines(out.String()) {
		candidate = strings.TrimSuffix(candidate, "\n")
		if strings.HasPrefix(candidate, ":") {
			break // the directive ends the list
		}
		if candidate = escape(candidate); strings.HasPrefix(candidate, last) {
			found = append(found, candidate)
		}
	}
	return found
}

// FlagsFit reports whether Cobra can parse the flags of an unfinished line. Otherwise its
// completion would print an error to the process's standard error, into the prompt. It sets the
// flags of the tree.
func FlagsFit(root *cobra.Command, words []string) bool {
	c, rest, err := root.Find(words)
	if err != nil {
		return true // Cobra finds that itself
	}
	err = c.ParseFlags(rest)
	_, waits := errors.AsType[*pflag.ValueRequiredError](err)
	return err == nil || waits // the value that is being completed
}

func lastWord(line string) int {
	begin := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case ' ', '\t':
			begin = i + 1
		}
	}
	return begin
}

var (
	escaping   = strings.NewReplacer(" ", `\ `)
	unescaping = strings.NewReplacer(`\ `, " ")
)

func escape(word string) string   { return escaping.Replace(word) }
func unescape(word string) string { return unescaping.Replace(word) }

// at completes each position of a command's arguments with its own completer; nil: none.
func at(places ...completer) cobra.CompletionFunc {
	return func(
		c *cobra.Command, args []string, prefix string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		const only = cobra.ShellCompDirectiveNoFileComp
		if len(args) >= len(places) || places[len(args)] == nil {
			return nil, only
		}
		var found []cobra.Completion
		for _, word := range places[len(args)](c.Context(), prefix) {
			if strings.HasPrefix(word, prefix) {
				found = append(found, word)
			}
		}
		return found, only
	}
}

func words(choice ...string) completer {
	return func(context.Context, string) []string { return choice }
}

// listWords asks the node for a list and returns a word for each item, unless it is empty.
func listWords[T any](
	ctx context.Context, e *env, req control.Request[[]T], word func(*T) string,
) (words []string) {
	list, _ := control.Ask(ctx, e.op, req) // without an answer nothing is completed
	for i := range list {
		if w := word(&list[i]); w != "" && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}

func (e *env) interfaceNames(ctx context.Context, _ string) []string {
	return listWords(ctx, e, control.Interfaces{},
		func(i *control.Interface) string { return i.Name })
}

// neighborAddrs completes the addresses of the neighbors, and ownAddrs those of the node.
func (e *env) neighborAddrs(ctx context.Context, _ string) []string {
	return listWords(ctx, e, control.Neighbors{},
		func(n *control.Neighbor) string { return n.Addr.String() })
}

func (e *env) ownAddrs(ctx context.Context, _ string) []string {
	return listWords(ctx, e, control.Interfaces{},
		func(i *control.Interface) string { return i.Addr.Addr().String() })
}

func flagWords(c *cobra.Command, flag string, f completer) {
	complete := at(f)
	err := c.RegisterFlagCompletionFunc(flag, func(
		c *cobra.Command, _ []string, prefix string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		return complete(c, nil, prefix)
	})
	if err != nil {
		panic("BUG: repl: " + err.Error()) // no such flag
	}
}

func (e *env) connections(ctx context.Context, _ string) []string {
	return e.socketNumbers(ctx, func(k control.Socket) bool {
		return k.Remote.Port() != 0 && !k.Program
	})
}

// conversations completes connections, also those of programs that run as this host.
func (e *env) conversations(ctx context.Context, _ string) []string {
	return e.socketNumbers(ctx, func(k control.Socket) bool {
		return k.Remote.Port() != 0 && !isUDP(k)
	})
}

func (e *env) everySocket(ctx context.Context, _ string) []string {
	return e.socketNumbers(ctx, func(k control.Socket) bool { return !k.Program })
}

func (e *env) socketNumbers(ctx context.Context, want func(control.Socket) bool) []string {
	return listWords(ctx, e, control.Sockets{}, func(k *control.Socket) string {
		if k.SID < 0 || !want(*k) {
			return ""
		}
		return strconv.Itoa(k.SID)
	})
}

func (e *env) settingKeys(ctx context.Context, prefix string) []string {
	return listWords(ctx, e, control.Show{Key: prefix},
		func(v *control.Setting) string { return v.Key })
}

// completeSetting completes a setting's key, and then its value: all values if there are only a
// few, otherwise the present one.
func (e *env) completeSetting(
	c *cobra.Command, args []string, prefix string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return at(e.settingKeys)(c, args, prefix)
	}
	list, err := control.Ask(c.Context(), e.op, control.Show{Key: args[0]})
	i := slices.IndexFunc(list, func(v control.Setting) bool { return v.Key == args[0] })
	if err != nil || i < 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	values := list[i].Values
	if len(values) == 0 {
		values = []string{list[i].Value}
	}
	return at(words(values...))(c, nil, prefix)
}

func commandNames(
	c *cobra.Command, args []string, prefix string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []string
	for _, sub := range c.Root().Commands() {
		if !sub.Hidden { // hides Cobra's own completion command
			names = append(names, sub.Name())
		}
	}
	return at(words(names...))(c, args, prefix)
}

// fileNames completes a path; a directory ends in a slash.
func fileNames(_ context.Context, prefix string) []string {
	dir, base := filepath.Split(prefix)
	list := cmp.Or(dir, ".")
	entries, err := os.ReadDir(list)
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries {
		name := e.Name()
		hidden := strings.HasPrefix(name, ".") && !strings.HasPrefix(base, ".")
		if hidden || !strings.HasPrefix(name, base) {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		found = append(found, dir+name)
	}
	return found
}
