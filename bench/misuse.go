//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

// misuse is an error in the command line; the program exits with status 2.
type misuse string

func (m misuse) Error() string { return string(m) }

// parse parses a command's flags and rejects further arguments. The flag package has printed its
// own errors already.
func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		if err == flag.ErrHelp { //nolint:errorlint // the flag package does not wrap it
			return err
		}
		return misuse("")
	}
	if flags.NArg() > 0 {
		return misuse(fmt.Sprintf("%s takes no %q; -help lists its flags",
			flags.Name(), flags.Arg(0)))
	}
	return nil
}

// repository returns the repository's root: the current folder, or its parent if the program runs
// in bench.
func repository() string {
	if _, err := os.Stat("cmd/node"); err != nil {
		return ".."
	}
	return "."
}

// names returns every name that -only can select, without duplicates.
func (s *session) names() []string {
	var list []string
	for _, c := range s.streams() {
		if !c.quick && !s.whole {
			continue
		}
		for i := range c.peers {
			if p := &c.peers[i]; !p.slow || s.whole {
				list = append(list, c.as(p)+" "+p.name)
			}
		}
	}
	if s.whole {
		for _, c := range costs() {
			list = append(list, c.name)
		}
		for _, m := range measurements() {
			list = append(list, m.name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// check rejects flags that select nothing to measure.
func (s *session) check() error {
	if s.turns.Rounds < 1 || s.span <= 0 {
		return misuse(fmt.Sprintf("-rounds %d -for %v: must be at least one round and a positive "+
			"time", s.turns.Rounds, s.span))
	}
	all := s.names()
	has := func(name string) bool { return strings.Contains(name, s.only) }
	if !slices.ContainsFunc(all, has) {
		return misuse(fmt.Sprintf("no case, peer or figure has %q in its name. The names:\n  %s",
			s.only, strings.Join(all, "\n  ")))
	}
	return nil
}
