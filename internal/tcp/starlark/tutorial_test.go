package starlark

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTutorialIsComplete checks that the tutorial's tables list each attribute of each event, each
// function and each name that a script can use.
func TestTutorialIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../../tutorial/README.md")
	require.NoError(t, err)
	tables := strings.Split(string(text), "\n\n")
	table := func(of string) string {
		for _, part := range tables {
			if strings.HasPrefix(part, "| `"+of+"` | unit |") {
				return part
			}
		}
		require.Fail(t, "no table", of)
		return ""
	}
	for of, names := range map[string][]string{
		"ack":     namesOf(ackFields),
		"state":   builtinNames,
		"conn":    namesOf(connFields),
		"loss":    namesOf(lossFields),
		"exit":    namesOf(exitFields),
		"restart": namesOf(restartFields),
		"segment": namesOf(segmentFields),
		"sent":    namesOf(sentFields),
		"timer":   namesOf(timerFields),
	} {
		for _, name := range names {
			assert.Contains(t, table(of), "`"+name+"`", of)
		}
	}
	for i := range signatures {
		want := strings.TrimPrefix(signatures[i].String(), "def ")
		assert.Contains(t, string(text), "`"+want+"`")
	}
	for name := range predeclared {
		if name == productName {
			continue
		}
		assert.Contains(t, string(text), "`"+name, "a function or a constant")
	}
	for name := range mathModule.Members {
		assert.Contains(t, string(text), "`"+name+"`")
	}
}

func namesOf[T any](fields []field[T]) []string {
	return (&event[T]{fields: fields}).AttrNames()
}
