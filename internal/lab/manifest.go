package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// These are the files of a directory of results. Records are in folders.
const (
	manifestFile = "run.json"
	documentFile = "experiment.yaml"
	trialsFile   = "trials.csv"
	summaryFile  = "summary.csv"
	columnsFile  = "columns.csv" // descriptions of the columns of all tables
	cellsFolder  = "cells"       // results of parts, from other processes
	filesFolder  = "files"       // files that the experiment names
	lockFile     = ".lock"
)

// folders are the folders of a directory of results.
var folders = []string{
	cellsFolder, filesFolder, plotsFolder, capturesFolder,
	result.RecordsFolder, result.FlowsFolder, result.LinksFolder,
}

// Manifest describes the results in a directory.
type Manifest struct {
	Name    string `json:"name"`
	About   string `json:"about,omitempty"`
	Version string `json:"version"`
	Mark    string `json:"mark"`
	Plan    string `json:"plan"`
	Seed    uint64 `json:"seed"`
	// Hash is the hash of all runs; empty if runs are missing.
	Hash string `json:"hash,omitempty"`
	// Until is the last Options.Until that was not zero; 0: there was none, or it was negative.
	Until float64 `json:"until,omitempty"`
	// Real is set if every second cell runs in real time.
	Real bool `json:"real,omitempty"`
	// Metrics are the metrics that the experiment file chooses for tables; nil: not set.
	Metrics []result.Metric `json:"metrics,omitempty"`
	Cells   []ManifestCell  `json:"cells"`
}

// ManifestCell is one cell: its settings, its flows and its number of trials.
type ManifestCell struct {
	Set    []plan.Setting `json:"set,omitempty"`
	Flows  []string       `json:"flows"`
	Trials int            `json:"trials"`
	// Warmup is the number of seconds at the start that averages exclude.
	Warmup float64 `json:"warmup_seconds,omitempty"`
}

func (s *Study) manifest() *Manifest {
	m := &Manifest{
		Name: s.Name, About: s.About, Version: s.Version, Mark: s.Mark, Plan: s.Plan,
		Seed: s.Seed, Metrics: s.Metrics, Real: s.Real != nil,
	}
	for i := range s.Cells {
		c := ManifestCell{
			Set: s.Cells[i].Set, Flows: []string{}, Trials: s.Cells[i].Trials,
			Warmup: s.Cells[i].Warmup.Seconds(),
		}
		for j := range s.Cells[i].Flows {
			c.Flows = append(c.Flows, s.Cells[i].Flows[j].Name)
		}
		m.Cells = append(m.Cells, c)
	}
	return m
}

// existingManifest reads the manifest of a directory, which must exist.
func existingManifest(dir string) (*Manifest, error) {
	switch info, err := os.Stat(dir); {
	case errors.Is(err, os.ErrNotExist):
		return nil, usage("%s: no such folder", dir)
	case err == nil && !info.IsDir():
		return nil, usage("%s: must be a folder with results", dir)
	}
	m, err := readManifest(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usage("%s is a folder without results: it has no %s", dir, manifestFile)
	}
	return m, err
}

// readManifest reads a directory's manifest. The error is os.ErrNotExist if it is missing.
func readManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, manifestFile)
	text, err := files.Text(path, files.MaxData)
	if err != nil {
		return nil, err
	}
	m := new(Manifest)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, result.ErrFile, err)
	}
	return m, nil
}

func (m *Manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		panic("BUG: lab: a manifest is no JSON: " + err.Error())
	}
	return result.WriteFile(filepath.Join(dir, manifestFile), append(text, '\n'))
}

func (m *Manifest) jobs() (all []job) {
	for cell := range m.Cells {
		for trial := range m.Cells[cell].Trials {
			all = append(all, job{cell, trial})
		}
	}
	return all
}

// stored reads the manifest of a directory, whose results must be the study's. It returns nil if
// there is no manifest.
func (s *Study) stored(dir string) (*Manifest, error) {
	m, err := readManifest(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return m, m.belongs(dir, s)
}

// belongs returns an error if a directory has the results of another experiment than the study.
func (m *Manifest) belongs(dir string, s *Study) error {
	if m.Mark == s.Mark {
		return nil
	}
	why := "with other settings"
	switch {
	case m.Real && s.Real == nil:
		why = "also in real time (--real)"
	case !m.Real && s.Real != nil:
		why = "in virtual time only"
	case m.Name != s.Name:
		why = "as " + diagnostic.Quote(m.Name)
	case m.Version != s.Version:
		why = fmt.Sprintf("by another version of the program, %s (this is %s)",
			m.Version, s.Version)
	case m.Seed != s.Seed:
		why = fmt.Sprintf("with seed %d", m.Seed)
	}
	return fmt.Errorf("%s %w: it was run %s; choose another directory with -o", dir, ErrOther, why)
}

// check returns an error if a run does not fit the manifest.
func (m *Manifest) check(t *result.Trial) error {
	if t.Cell >= len(m.Cells) {
		return fmt.Errorf("%w: no cell %d: the last is %d", result.ErrFile, t.Cell, len(m.Cells)-1)
	}
	flows := m.Cells[t.Cell].Flows
	if len(flows) != len(t.Flows) {
		return fmt.Errorf("%w: %v has %d flows, expected %d", result.ErrFile, jobOf(t),
			len(t.Flows), len(flows))
	}
	for i := range flows {
		if t.Flows[i].Name != flows[i] {
			return fmt.Errorf("%w: %v: flow %q, expected %q", result.ErrFile, jobOf(t),
				t.Flows[i].Name, flows[i])
		}
	}
	return nil
}
