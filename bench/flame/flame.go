// Package flame reads CPU profiles of Go programs. It draws flame graphs, and adds up the time by
// package of the project and by function.
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

// Profile holds the stacks of a CPU profile, outermost function first.
type Profile struct {
	Stacks []Stack
	Total  int64 // in ns
}

// Stack is a call stack and the CPU time of its innermost function.
type Stack struct {
	Functions []string
	Time      int64 // in ns
}

// Read reads a CPU profile that runtime/pprof has written.
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
		return nil, fmt.Errorf("%s is not a CPU profile", path.Base(file))
	}
	r := &Profile{}
	for _, s := range p.Sample {
		stack := Stack{Time: s.Value[at]}
		for _, l := range slices.Backward(s.Location) {
			for _, line := range slices.Backward(l.Line) { // inlined functions come first
				stack.Functions = append(stack.Functions, line.Function.Name)
			}
		}
		r.Stacks = append(r.Stacks, stack)
		r.Total += stack.Time
	}
	return r, nil
}

// Share is a part of the CPU time.
type Share struct {
	Name  string
	Share float64 // from 0 to 1
}

// Packages returns the shares of the project's packages. System calls and copies of a package are
// listed separately, and so is Go's runtime.
func (p *Profile) Packages() []Share { return p.shares(packageOf) }

// Functions returns the shares of the functions themselves, without their callees.
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

// Short returns a function's name without the common part of its import path.
func Short(function string) string {
	if rest, ok := strings.CutPrefix(function, module+"/"); ok {
		return strings.TrimPrefix(rest, "internal/")
	}
	return path.Base(function)
}

// packageOf returns the name under which Packages counts a stack: a package, the system calls or
// copies of a package, or the runtime of Go.
func packageOf(stack []string) string {
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
