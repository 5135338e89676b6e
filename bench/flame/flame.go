// Package flame reads CPU profiles of Go programs: as a flame graph, and as shares by room of the
// project and by function.
package flame

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// Profile is the stacks of a CPU profile, outermost function first.
type Profile struct {
	Stacks []Stack
	Total  int64 // ns
}

// Stack is functions that called each other, and how long the last of them ran.
type Stack struct {
	Functions []string
	Time      int64 // ns
}

// Read reads a file that runtime/pprof has written.
func Read(file string) (*Profile, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path.Base(file), err)
	}
	at := slices.IndexFunc(p.SampleType, func(v *profile.ValueType) bool { return v.Type == "cpu" })
	if at < 0 {
		return nil, fmt.Errorf("%s is no CPU profile", path.Base(file))
	}
	r := &Profile{}
	for _, s := range p.Sample {
		stack := Stack{Time: s.Value[at]}
		for _, l := range slices.Backward(s.Location) {
			for _, line := range slices.Backward(l.Line) { // what was inlined comes first there
				stack.Functions = append(stack.Functions, line.Function.Name)
			}
		}
		r.Stacks = append(r.Stacks, stack)
		r.Total += stack.Time
	}
	return r, nil
}

// Share is what part of the time went somewhere.
type Share struct {
	Name  string
	Share float64 // of 1
}

// Rooms are the shares of the project's rooms. What the kernel did, and what Go's runtime did for a
// room, is told apart: system calls and copies have lines of their own.
func (p *Profile) Rooms() []Share { return p.shares(room) }

// Functions are the shares of the functions themselves, without what they called.
func (p *Profile) Functions() []Share {
	return p.shares(func(stack []string) string { return Short(stack[len(stack)-1]) })
}

func (p *Profile) shares(name func([]string) string) (list []Share) {
	sums := map[string]int64{}
	for _, s := range p.Stacks {
		if len(s.Functions) > 0 {
			sums[name(s.Functions)] += s.Time
		}
	}
	for _, n := range slices.Sorted(maps.Keys(sums)) {
		list = append(list, Share{n, float64(sums[n]) / float64(max(1, p.Total))})
	}
	slices.SortStableFunc(list, func(a, b Share) int { return cmp.Compare(b.Share, a.Share) })
	return list
}

const module = "github.com/tidepool-net/tidepool"

// Short is a function's name without the paths that all have in common.
func Short(function string) string {
	if rest, ok := strings.CutPrefix(function, module+"/"); ok {
		return strings.TrimPrefix(rest, "internal/")
	}
	return path.Base(function)
}

// room is whose time a stack's is.
func room(stack []string) string {
	leaf := stack[len(stack)-1]
	owner := ""
	for _, f := range slices.Backward(stack) {
		if strings.HasPrefix(f, module) {
			owner, _, _ = strings.Cut(path.Base(f), ".")
			owner = strings.TrimPrefix(path.Join(path.Dir(f), owner), module+"/")
			break
		}
	}
	switch {
	case owner == "":
		return "Go's runtime: scheduler, timers, memory"
	case strings.HasPrefix(owner, "bench/"):
		owner = "the application that measures"
	}
	switch {
	case strings.Contains(leaf, "Syscall"):
		return "the kernel, called by " + owner
	case leaf == "runtime.memmove":
		return "copies in " + owner
	default:
		return owner
	}
}
