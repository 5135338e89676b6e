package repl

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// silent are the commands that have no answer but success, those that take the rest of the line as
// it stands, and those about the session: they alone have no --json. A session's --json is for all.
var silent = strings.Fields(`up down route.add route.del shutdown close verbose pcap.start
	doors.close rcp.close rdt.close s send udp watch help quit source sleep wait cancel`)

// leaves are a command's ends.
func leaves(c *cobra.Command, each func(*cobra.Command)) {
	if !c.HasSubCommands() {
		each(c)
	}
	for _, sub := range c.Commands() {
		leaves(sub, each)
	}
}

// TestEveryCommand: --help is an answer, on standard output and with nothing beside it; a flag
// that there is not is wrong usage, with nothing on standard output; and who answers has --json.
func TestEveryCommand(t *testing.T) {
	count := 0
	leaves(open(t, &fake{}, Config{}).tree(), func(c *cobra.Command) {
		count++
		name := nameOf(c)
		s := open(t, &fake{}, Config{})
		err := s.Execute(t.Context(), name+" --help")
		require.NoError(t, err, name)
		assert.Contains(t, s.out.String(), "usage: "+strings.Fields(name)[0], name)
		assert.Empty(t, s.err.String(), name)
		if c.DisableFlagParsing {
			return
		}
		s = open(t, &fake{}, Config{})
		err = s.Command(t.Context(), append(strings.Fields(name), "--no-such-flag")...)
		require.ErrorIs(t, err, control.ErrUsage, name)
		assert.Equal(t, 2, ExitCode(err), name)
		assert.Empty(t, s.out.String(), name)
		assert.Contains(t, s.err.String(), "unknown flag: --no-such-flag", name)
		silently := false
		for _, other := range silent {
			silently = silently || other == strings.ReplaceAll(name, " ", ".")
		}
		assert.Equal(t, !silently, c.Flags().Lookup("json") != nil, "%s: its --json", name)
	})
	assert.Greater(t, count, 40)
}

// TestManual: each command of the shell is in it, with its flags.
func TestManual(t *testing.T) {
	list := Manual()
	names := map[string]Entry{}
	for _, e := range list {
		assert.NotEmpty(t, e.Text, e.Use)
		names[strings.Fields(e.Use)[0]] = e
	}
	for _, c := range open(t, &fake{}, Config{}).tree().Commands() {
		assert.Contains(t, names, c.Name())
	}
	assert.Equal(t, "capture [IF|all] [FILTER...]", names["capture"].Use)
	assert.Len(t, names["capture"].Flags, 6)
	assert.Equal(t, "Probes", names["trace"].Group)
}
