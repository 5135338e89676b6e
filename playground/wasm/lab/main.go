//go:build wasip1

// Command lab is the laboratory of the playground. It runs one experiment as a WebAssembly reactor
// (WASI preview 1), for ../../site/lab.js.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
	"github.com/tidepool-net/tidepool/playground/wasm/guest"
)

func main() {}

// order names an experiment file and the changes to make in the experiment.
type order struct {
	Experiment string            `json:"experiment"`
	Files      map[string]string `json:"files"`
	Changes    []lab.Change      `json:"changes"`
}

// answer is what the laboratory prints. The body before it is the report.
type answer struct {
	Name  string `json:"name"`
	Table string `json:"table"`
	Hash  string `json:"hash"`
}

func tell(value any) {
	text, _ := json.Marshal(value) // plain values
	guest.Say(guest.Output, 0, text)
}

// run runs an experiment.
//
//go:wasmexport run
func run() {
	o, err := guest.Read[order]()
	if err != nil {
		guest.Result(nil, err)
		return
	}
	a, err := o.run()
	guest.Result(a, asErrors(err))
}

func (o *order) run() (a answer, err error) {
	for _, name := range slices.Sorted(maps.Keys(o.Files)) {
		if err := files.CheckName(name); err != nil {
			return a, err
		}
		if err := files.Overwrite(name, []byte(o.Files[name]), 0o644); err != nil {
			return a, err
		}
	}
	study, err := lab.Load(lab.Request{
		Experiment: o.Experiment, Changes: o.Changes, Version: "playground",
		Printed: func(at time.Duration, line string) {
			tell(map[string]any{"at": at.Seconds(), "text": line})
		},
	})
	if err != nil {
		return a, err
	}
	dir, _ := lab.DefaultDir(study)
	r, err := lab.Run(context.Background(), study, lab.Options{
		Dir: dir, Records: len(study.Cells),
		Progress: func(done, of int) { tell(map[string]int{"done": done, "of": of}) },
	})
	if err != nil {
		return a, err
	}
	var report bytes.Buffer
	var table strings.Builder
	err = errors.Join(r.Preview(&report, nil), r.Print(&table, lab.TableOptions{}))
	guest.Say(guest.Body, 0, report.Bytes())
	return answer{r.Name, table.String(), r.Hash()}, err
}

// asErrors returns an error with the positions of all errors.
func asErrors(err error) error {
	if e, ok := errors.AsType[*starlark.Error](err); ok {
		where, _, _ := strings.Cut(err.Error(), ": "+e.Error())
		where = where[strings.LastIndex(where, ": ")+1:] // the flow and the network's time
		return diagnostic.Errors{{
			File: e.File, Line: e.Line, Col: e.Column, Msg: e.What + ", in" + where,
		}}
	}
	if e, ok := errors.AsType[*diagnostic.Error](err); ok {
		return diagnostic.Errors{e}
	}
	return err
}
