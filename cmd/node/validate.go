package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/topology"
)

func validateCommand() *cobra.Command {
	var asJSON, here bool
	c := &cobra.Command{
		Use:   "validate FILE|FOLDER...",
		Short: "check .lnx files without running anything",
		Long: "Check .lnx files and print every error with its line. For a folder, it checks\n" +
			"all files below it; the files in one folder are one network and must fit\n" +
			"together. The exit status is 2 if files have errors. It is 1 if only --here\n" +
			"finds errors: the files are valid, but this machine cannot run them now.",
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			v := validation{here: here, ctx: c.Context}
			for _, arg := range args {
				if err := v.add(arg); err != nil {
					return &usageError{err}
				}
			}
			if err := v.print(c.OutOrStdout(), asJSON); err != nil {
				return err
			}
			return v.verdict()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().BoolVar(&here, "here", false,
		"also check that this machine can run them now: ports, addresses, routes to peers")
	return c
}

// validation is the result of `node validate`, also as JSON.
type validation struct {
	OK       bool          `json:"ok"`
	Files    []checkedFile `json:"files"`
	Problems lnx.Errors    `json:"problems"`

	errs lnx.Errors
	busy int                    // number of errors that concern this machine and not the files
	here bool                   // checks also whether this machine can run the files
	ctx  func() context.Context // returns the command's context
}

type checkedFile struct {
	File       string `json:"file"`
	OK         bool   `json:"ok"` // ignores the other files
	Grammar    string `json:"grammar,omitempty"`
	Interfaces int    `json:"interfaces"`
	Neighbors  int    `json:"neighbors"`
}

// add checks one argument: a file, or a directory. Each directory below it is a network.
func (v *validation) add(arg string) error {
	info, err := os.Stat(arg)
	if err != nil {
		return noFile(arg, err, "an .lnx file, a folder of them, or a "+topology.Extension+" file")
	}
	if isPlan(arg, info) {
		return v.addPlan(arg)
	}
	if !info.IsDir() {
		_, err := v.parse(arg)
		return err
	}
	networks := map[string][]*lnx.Config{}
	before := len(v.Files)
	err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".lnx" {
			return err
		}
		c, err := v.parse(path)
		networks[filepath.Dir(path)] = append(networks[filepath.Dir(path)], c)
		return err
	})
	if err != nil {
		return err
	}
	if len(v.Files) == before {
		return fmt.Errorf("%s: no .lnx file in this folder", arg)
	}
	for _, folder := range slices.Sorted(maps.Keys(networks)) {
		v.errs = append(v.errs, lnx.CheckNetwork(networks[folder]...)...)
	}
	return nil
}

func noFile(path string, err error, want string) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var near []string
	ext := filepath.Ext(path)
	list, _ := os.ReadDir(filepath.Dir(path)) // needed only for a hint
	for _, e := range list {
		if filepath.Ext(e.Name()) == ext {
			near = append(near, strings.TrimSuffix(e.Name(), ext))
		}
	}
	return fmt.Errorf("%s: no such file%s; give %s", path,
		diagnostic.DidYouMean(strings.TrimSuffix(filepath.Base(path), ext), near), want)
}

func (v *validation) addPlan(path string) error {
	f, err := readPlan(path)
	bad, mistakes := errors.AsType[lnx.Errors](err)
	if err != nil && !mistakes {
		return err
	}
	v.errs = append(v.errs, bad...)
	file := checkedFile{File: path, OK: err == nil, Grammar: "plan"}
	var here lnx.Errors
	if f != nil {
		for _, n := range f.nodes {
			file.Interfaces += len(n.config.Interfaces)
			file.Neighbors += len(n.config.Neighbors)
			if v.here && n.host == "" {
				here = append(here, operator.CheckHere(v.ctx(), n.config)...)
			}
		}
		if len(here) > 0 {
			v.errs = append(v.errs, f.plan.PortsTaken(path, here))
			v.busy++
		}
	}
	v.Files = append(v.Files, file)
	return nil
}

// parse checks one file. It returns nil if the file is invalid.
func (v *validation) parse(path string) (*lnx.Config, error) {
	text, err := files.Text(path, files.MaxText)
	if err != nil {
		return nil, err
	}
	c, errs := lnx.Read(path, text)
	readable := errs.Err() == nil
	errs = append(errs, operator.Check(c)...)
	if v.here && readable {
		busy := operator.CheckHere(v.ctx(), c)
		v.busy += len(busy)
		errs = append(errs, busy...)
	}
	errs.Sort()
	v.errs = append(v.errs, errs...)
	if !readable {
		v.Files = append(v.Files, checkedFile{File: path})
		return nil, nil //nolint:nilnil // the file is invalid, and its errors are recorded
	}
	v.Files = append(v.Files, checkedFile{
		File: path, OK: errs.Err() == nil, Grammar: c.Grammar.String(),
		Interfaces: len(c.Interfaces), Neighbors: len(c.Neighbors),
	})
	return c, nil
}

func (v *validation) verdict() error {
	bad, ok := errors.AsType[lnx.Errors](v.errs.Err())
	switch {
	case !ok:
		return nil
	case len(bad) == v.busy:
		return printedError{machineError{bad}}
	}
	return printedError{bad}
}

func (v *validation) print(out io.Writer, asJSON bool) error {
	v.OK = v.errs.Err() == nil
	if asJSON {
		v.Problems = append(lnx.Errors{}, v.errs...) // an empty list is []
		return json.NewEncoder(out).Encode(v)
	}
	for _, e := range v.errs {
		if _, err := fmt.Fprintln(out, e); err != nil {
			return err
		}
	}
	mistakes := 0
	for _, e := range v.errs {
		if !e.Note {
			mistakes++
		}
	}
	_, err := fmt.Fprintf(out, "%s, %s\n",
		counted(len(v.Files), "file"), counted(mistakes, "error"))
	return err
}

func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
