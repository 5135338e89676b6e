package playground

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

const scriptSuffix = ".star"

// scripts are the congestion controls that a node's files define, by file name.
type scripts map[string]congestion.Make

// places returns the errors of a script with their line numbers.
func places(err error) error {
	list := []error{err}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		list = many.Unwrap()
	}
	var all diagnostic.Errors
	for _, one := range list {
		if e, ok := errors.AsType[*starlark.Error](one); ok {
			all = append(all, &diagnostic.Error{
				File: e.File, Line: e.Line, Col: e.Column, Msg: e.What,
			})
		}
	}
	if len(all) == 0 {
		return err
	}
	return all
}

// before makes a node call f before it handles a request. If f fails, the request fails.
func before[R control.Request[A], A any](
	h control.Handlers, f func(ctx context.Context, r R) error,
) {
	kind := reflect.TypeFor[R]()
	handle := h[kind]
	h[kind] = func(ctx context.Context, req any) (any, error) {
		if err := f(ctx, req.(R)); err != nil {
			return nil, err
		}
		return handle(ctx, req)
	}
}

const congestionKey = "tcp.congestion"

// takeScripts makes `set tcp.congestion` and `cc` accept a file of the node. now returns the
// world's time.
func (h *host) takeScripts(now func() time.Duration) {
	h.now = now
	kind := reflect.TypeFor[control.Show]()
	show := h.node.Handlers[kind]
	h.node.Handlers[kind] = func(ctx context.Context, req any) (any, error) {
		answer, err := show(ctx, req)
		list, _ := answer.([]control.Setting)
		for i := range list {
			if list[i].Key == congestionKey {
				list[i].Values = slices.Concat(list[i].Values, h.scriptFiles())
			}
		}
		return answer, err
	}
	before(h.node.Handlers, func(_ context.Context, r control.Set) error {
		if r.Key != congestionKey {
			return nil
		}
		return h.load(r.Value)
	})
	before(h.node.Handlers, func(_ context.Context, r control.Congestion) error {
		return h.load(r.Name)
	})
}

// scriptFiles returns the names of the node's files that may be congestion controls.
func (h *host) scriptFiles() (names []string) {
	list, _ := h.list() // without its files, only the built-in ones
	for _, f := range list {
		if strings.HasSuffix(f.Name, scriptSuffix) {
			names = append(names, f.Name)
		}
	}
	return names
}

// load compiles a congestion control, if it is a script.
func (h *host) load(name string) error {
	if !strings.HasSuffix(name, scriptSuffix) {
		return nil
	}
	f, _, err := h.files.Read(name)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := files.All(name, f, MaxFile)
	if err != nil {
		return err
	}
	program, err := starlark.Compile(name, text, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", control.ErrUsage, err)
	}
	run := program.Begin(starlark.Hooks{
		Failed: func(err error) {
			h.out(fmt.Sprintf("At %.3f s: %v\nIts connections keep their windows from now on. "+
				"Correct the file and set it again.\n", h.now().Seconds(), err))
		},
		Printed: func(_ clock.Time, line string) { h.out(name + ": " + line + "\n") },
	})
	return h.node.Node.Call(func(*stack.Stack, clock.Time) error {
		h.scripts[name] = run.New
		return nil
	})
}
