package diagnostic

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDidYouMean(t *testing.T) {
	words := []string{"delay", "loss", "rate", "up", "MTU"}
	for typed, want := range map[string]string{
		"dealy": " (did you mean delay?)", // two letters swapped
		"lss":   " (did you mean loss?)",
		"RATES": " (did you mean rate?)",
		"mut":   " (did you mean MTU?)",
		"x":     "", // no candidate is near
		"queue": "",
		"":      "",
	} {
		assert.Equal(t, want, DidYouMean(typed, words), typed)
	}
}

func TestNear(t *testing.T) {
	words := []string{"ls", "lr", "ln", "cc", "ping", "interfaces", "recv", "rcp", "recvfile"}
	for typed, want := range map[string][]string{
		"pign":      {"ping"},
		"intrfaces": {"interfaces"},
		"INTERFACE": {"interfaces"},
		"rec":       {"recv"},
		"recvf":     {"recv"},
		"re":        {"recv", "recvfile"}, // the beginning of two candidates
		"cd":        nil,                  // no suggestion: a word of two letters may have no typo
		"l":         {"ls", "lr", "ln"},
		"xyzzy":     nil,
		"":          nil,
	} {
		assert.Equal(t, want, Near(typed, words), typed)
	}
}
