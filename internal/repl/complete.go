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

// completer lists candidates for one argument. It may ignore the prefix.
type completer func(ctx context.Context, prefix string) []string

// completionTimeout is how long Tab waits for the node's answer.
const completionTimeout = 500 * time.Millisecond

// Complete lists the words that can replace the last, unfinished word of the line. A directory ends
// in a slash, because the path may continue.
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
	root = s.tree() // FlagsFit has set the flags of the other tree
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	// Cobra's completion for shells computes the list. It knows the commands, flags and
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
			break // the directive is the last line
		}
		if candidate = escape(candidate); strings.HasPrefix(candidate, last) {
			found = append(found, candidate)
		}
	}
	return found
}

// FlagsFit reports whether Cobra can parse the flags of an unfinished line. If it cannot, Cobra's
// completion would print an error to standard error, in the middle of the prompt. FlagsFit sets the
// flags of the tree.
func FlagsFit(root *cobra.Command, words []string) bool {
	c, rest, err := root.Find(words)
	if err != nil {
		return true // Cobra itself handles this error
	}
	err = c.ParseFlags(rest)
	_, waits := errors.AsType[*pflag.ValueRequiredError](err)
	return err == nil || waits // waits: the user is completing this value
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

// at returns a completion function with one completer for each argument; nil lists nothing.
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

// listWords requests a list from the node and returns a word for each item. It omits empty words.
func listWords[T any](
	ctx context.Context, e *env, req control.Request[[]T], word func(*T) string,
) (words []string) {
	list, _ := control.Ask(ctx, e.op, req) // an error means no candidates
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

// neighborAddrs completes the addresses of the neighbors. ownAddrs completes the node's.
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
		panic("BUG: repl: " + err.Error()) // the flag does not exist
	}
}

func (e *env) connections(ctx context.Context, _ string) []string {
	return e.socketNumbers(ctx, func(k control.Socket) bool {
		return k.Remote.Port() != 0 && !k.Program
	})
}

// conversations completes connections, also those of programs that run on this host.
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

// completeSetting completes a setting's key, and then its value. If there are only a few values, it
// lists all of them, otherwise only the current one.
func (e *env) completeSetting(
	c *cobra.Command, args []string, prefix string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return at(e.settingKeys)(c, args, prefix)
	}
	return at(words(e.settingValues(c.Context(), args[0])...))(c, nil, prefix)
}

func (e *env) settingValues(ctx context.Context, key string) []string {
	list, err := control.Ask(ctx, e.op, control.Show{Key: key})
	i := slices.IndexFunc(list, func(v control.Setting) bool { return v.Key == key })
	if err != nil || i < 0 {
		return nil
	}
	if len(list[i].Values) == 0 {
		return []string{list[i].Value}
	}
	return list[i].Values
}

func (e *env) algorithms(ctx context.Context, _ string) []string {
	return e.settingValues(ctx, congestionKey)
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

// fileNames completes a path. A directory ends in a slash.
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
