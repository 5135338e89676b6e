package lab

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/preset"
)

// repeat are the commands that run the experiment again: one that does so wherever somebody is, or
// where the results were made; and one for the folder of the results themselves. Either may be
// empty, not both.
func (r *Results) repeat() (command, here string) {
	const run, anew = "node lab run ", " --fresh"
	if flags, ok := r.ofPreset(); ok {
		return run + r.Name + flags + anew, ""
	}
	here = run + "." + anew
	if filepath.IsAbs(r.Dir) || r.Dir == "." {
		return "", here // that the maker's machine has such a folder helps nobody
	}
	return run + quoted(filepath.ToSlash(r.Dir)) + anew, here
}

// ofPreset reports whether the results are those of a preset as it comes, and with which flags.
func (r *Results) ofPreset() (flags string, ok bool) {
	if _, ok := preset.Find(r.Name); !ok {
		return "", false
	}
	q := Request{Experiment: r.Name, Version: r.Version, Real: r.Real}
	s, err := Load(q)
	if err == nil && s.Seed != r.Seed {
		seed := fmt.Sprint("seed=", r.Seed)
		flags = " --" + strings.Replace(seed, "=", " ", 1)
		q.Changes = []Change{{Text: seed}}
		s, err = Load(q)
	}
	if err != nil || s.Plan != r.Plan {
		return "", false
	}
	trials, same := 0, true
	for i := range r.Cells {
		n := r.Cells[i].Trials
		if r.Real && isReal(i) {
			if n != s.Cells[i].Trials {
				return "", false
			}
			continue
		}
		if trials > 0 && n != trials {
			return "", false
		}
		trials, same = n, same && n == s.Cells[i].Trials
	}
	if !same {
		flags += fmt.Sprint(" --trials ", trials)
	}
	if r.Real {
		flags += " --real"
	}
	return flags, true
}

// plainWord is a word that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// quoted is a word for a shell.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// warmup says how much of the beginning of runs is left out; empty: nothing.
func (m *Manifest) warmup() string {
	least, most := m.Cells[0].Warmup, 0.0
	for i := range m.Cells {
		least, most = min(least, m.Cells[i].Warmup), max(most, m.Cells[i].Warmup)
	}
	switch {
	case most == 0:
		return ""
	case least == most:
		return fmt.Sprintf("the first %g s", most)
	}
	return fmt.Sprintf("the first %g to %g s, by the cell,", least, most)
}
