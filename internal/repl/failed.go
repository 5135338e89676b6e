package repl

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// nodesVerb is the annotation of a command that has a different name in the node's errors.
const nodesVerb = "verb"

// failed returns an error of the node with this command's name in place of the node's name for it,
// and appends advice. A nil error stays nil.
func failed(c *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	name, text := nameOf(c), plainly(err)
	for _, verb := range []string{name, c.Name(), c.Annotations[nodesVerb]} {
		rest, ok := strings.CutPrefix(text, verb)
		if ok && verb != "" && rest != "" && (rest[0] == ' ' || rest[0] == ':') {
			return &commandError{text: name + rest + help(c, err), cause: err}
		}
	}
	return &commandError{text: name + ": " + text + help(c, err), cause: err}
}

// inside removes from errors the internal terms that users do not know.
var inside = strings.NewReplacer(
	control.ErrUsage.Error()+": ", "", "tcp: config: ", "", ": open ", ": ")

func plainly(err error) string { return strings.TrimPrefix(inside.Replace(err.Error()), "open ") }

// help returns advice on an error, or "".
func help(c *cobra.Command, err error) string {
	switch {
	case errors.Is(err, fs.ErrExist) && c.Flags().Lookup("force") != nil &&
		!c.Flags().Changed("force"):
		return "; --force replaces it"
	case c.Parent() != c.Root(): // the sockets of rcp and rdt are ports
	case errors.Is(err, control.ErrNoSuchSocket):
		return "; `ls` lists them"
	case errors.Is(err, control.ErrNotConnected):
		return ": it is a listener; `ls` shows which sockets are connections"
	}
	return ""
}

// commandError is an error whose text names this command.
type commandError struct {
	text  string
	cause error
}

func (r *commandError) Error() string { return r.text }
func (r *commandError) Unwrap() error { return r.cause }

// unset is like failed, but reports an unknown key or prefix of a setting in one line.
func unset(e *env, c *cobra.Command, key string, err error) error {
	keys := e.settingKeys(c.Context(), "")
	if !errors.Is(err, control.ErrUsage) || len(keys) == 0 || slices.Contains(keys, key) {
		return failed(c, err)
	}
	if slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, key) }) {
		return wrong(c, "no setting %q; `show %s` lists those with this prefix", key, key)
	}
	return wrong(c, "no setting %q%s", key, cmp.Or(didYouMean(key, keys), "; `show` lists them"))
}
