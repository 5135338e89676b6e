package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
)

// reference is the page about experiment files.
var reference = filepath.Join("..", "..", "..", "docs", "EXPERIMENTS.md")

// known returns all keys that a file can have, by table, and the names of queues and the like.
func known() []string {
	var own []key
	for _, p := range protocolNames {
		own = append(own, new(flowDraft).keysOf(Protocol(p))...)
	}
	return slices.Concat(names(slices.Concat(
		new(draft).keys(), pathKeys, new(link).keys(), new(queue).keys(), new(jitterDraft).keys(),
		new(link).corruptKeys(), new(link).reorderKeys(), new(lossDraft).keys(),
		new(gilbertDraft).keys(), stateKeys(&netem.FourStates{}), windowKeys(&netem.Window{}),
		onOffKeys(&netem.OnOff{}), new(scheduleDraft).keys(), policerKeys(&netem.Policer{}),
		new(traceDraft).keys(), new(flowDraft).keys(), new(App).keys(), own,
		echoKeys(&workload.EchoConfig{}), rcpKeys(&rcp.Config{}), objectKeys(&workload.ObjectsConfig{}),
		orderKeys(&workload.ObjectsConfig{}), rdtKeys(&workload.ObjectsConfig{}),
		new(strategyDraft).keys(),
		new(expectationDraft).keys(),
	)), queueNames, shellNames, protocolNames, recoveries)
}

// The reference has every key, every unit and every name, formatted as code.
func TestReference(t *testing.T) {
	b, err := os.ReadFile(reference)
	require.NoError(t, err)
	text := string(b)
	code := coded(text)
	for _, k := range known() {
		assert.True(t, code[k], "key %s", k)
	}
	for u := range result.Measures {
		assert.True(t, code[u], "unit %s", u)
	}
	for _, c := range constantNames {
		assert.True(t, code[c.Name], "name %s", c.Name)
	}
}

// coded returns the words between backticks.
func coded(text string) map[string]bool {
	words := map[string]bool{}
	for i, part := range strings.Split(text, "`") {
		if i%2 == 0 {
			continue
		}
		words[part] = true
		for _, w := range strings.FieldsFunc(part, func(r rune) bool {
			return strings.ContainsRune(" {}[]:,\"", r)
		}) {
			words[w] = true
		}
	}
	return words
}

// The complete files in the reference are valid.
func TestReferenceFiles(t *testing.T) {
	b, err := os.ReadFile(reference)
	require.NoError(t, err)
	n := 0
	for i, part := range strings.Split(string(b), "```") {
		text, whole := strings.CutPrefix(part, "yaml\n")
		if i%2 == 0 || !whole {
			continue
		}
		n++
		f, err := Parse("EXPERIMENTS.md", []byte(text))
		require.NoError(t, err)
		f.Load = func(string) ([]byte, error) { return []byte("1\n2\n"), nil }
		_, err = f.Cells()
		require.NoError(t, err)
	}
	assert.Equal(t, 3, n)
}
