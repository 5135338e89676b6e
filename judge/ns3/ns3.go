// Package ns3 runs the laboratory's experiments in ns-3, to compare the two simulators.
//
// ns-3 is optional. Find looks for its headers and libraries, for example those of the Python
// package ns3, and compiles driver/driver.cc with them. An experiment with a part that ns-3 lacks
// fails with an UnableError.
package ns3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

//go:embed driver/driver.cc
var driver []byte

// ErrNotFound means that ns-3 is not installed.
var ErrNotFound = errors.New("ns-3 not found: `python3 -m pip install --no-deps --target DIR " +
	"ns3` installs it, and TIDEPOOL_NS3=DIR/ns3 names it")

// Simulator is an installed ns-3 with the driver compiled for it.
type Simulator struct {
	// Version is ns-3's version, such as 3.44.
	Version string
	program string
}

// modules are the libraries that the driver links to.
var modules = []string{
	"core", "network", "internet", "point-to-point", "applications", "traffic-control", "bridge",
	"stats", "mobility", "propagation", "antenna", "config-store",
}

// Find looks for ns-3 and compiles the driver, which takes some seconds the first time; the user's
// cache folder keeps the result.
func Find(ctx context.Context) (*Simulator, error) {
	include, lib, err := locate(ctx)
	if err != nil {
		return nil, err
	}
	version, suffix, err := versionOf(lib)
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find a folder for the compiled driver: %w", err)
	}
	sum := sha256.Sum256(slices.Concat(driver, []byte(lib+version)))
	s := &Simulator{version, filepath.Join(cache, "tidepool", "ns3-"+hex.EncodeToString(sum[:8]))}
	if _, err := os.Stat(s.program); err == nil {
		return s, nil
	}
	return s, s.build(ctx, include, lib, suffix)
}

// locate returns the folders of the headers and of the libraries. They are below TIDEPOOL_NS3, or
// where python3 finds the package ns3.
func locate(ctx context.Context) (include, lib string, err error) {
	root := os.Getenv("TIDEPOOL_NS3")
	if root == "" {
		const find = "from importlib.util import find_spec\n" +
			"print(find_spec('ns3').submodule_search_locations[0])"
		out, err := exec.CommandContext(ctx, "python3", "-c", find).Output()
		if err != nil {
			return "", "", ErrNotFound
		}
		root = strings.TrimSpace(string(out))
	}
	for _, name := range []string{"lib64", "lib"} {
		lib = filepath.Join(root, name)
		if _, err := os.Stat(lib); err == nil {
			return filepath.Join(root, "include"), lib, nil
		}
	}
	return "", "", fmt.Errorf("%w (no libraries in %q)", ErrNotFound, root)
}

var libraryName = regexp.MustCompile(`^libns3\.?([0-9.]+)-core(-[a-z]+)?\.so$`)

// versionOf returns ns-3's version and the suffix of its libraries' names.
func versionOf(lib string) (version, suffix string, err error) {
	entries, err := os.ReadDir(lib)
	if err != nil {
		return "", "", fmt.Errorf("read ns-3's libraries: %w", err)
	}
	for _, e := range entries {
		if m := libraryName.FindStringSubmatch(e.Name()); m != nil {
			return m[1], m[2], nil
		}
	}
	return "", "", fmt.Errorf("%w (no libns3*-core.so in %s)", ErrNotFound, lib)
}

// build compiles the driver to a temporary name first, so that no half-written program runs.
func (s *Simulator) build(ctx context.Context, include, lib, suffix string) error {
	if err := os.MkdirAll(filepath.Dir(s.program), 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(s.program), "build")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	source, program := filepath.Join(temp, "driver.cc"), filepath.Join(temp, "driver")
	if err := os.WriteFile(source, driver, 0o644); err != nil {
		return err
	}
	args := []string{
		"-O2", "-std=c++20", "-I" + include, source, "-o", program, "-L" + lib,
		"-Wl,-rpath," + lib, "-Wl,--allow-shlib-undefined",
	}
	for _, m := range modules {
		args = append(args, "-lns"+"3."+s.Version+"-"+m+suffix)
	}
	compiler := cmp.Or(os.Getenv("CXX"), "c++")
	if out, err := exec.CommandContext(ctx, compiler, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("compile the ns-3 driver with %s: %w\n%s", compiler, err, firstLines(out))
	}
	return os.Rename(program, s.program)
}

// firstLines returns the beginning of a compiler's output.
func firstLines(out []byte) []byte {
	const most = 10
	lines := bytes.SplitAfterN(out, []byte{'\n'}, most+1)
	return bytes.Join(lines[:min(len(lines), most)], nil)
}

// Options change how an experiment is played.
type Options struct {
	// Without lists the deviations of ns-3's TCP to remove, from Deviations.
	Without []string
	// Record requests a record of windows and round trips.
	Record bool
}

// Play runs a trial of a cell. ns-3 draws the losses itself, so they differ from the laboratory's.
func (s *Simulator) Play(ctx context.Context, cell *plan.Cell, trial int, o Options) (
	*result.Trial, *result.Record, error,
) {
	text, err := scenario(&cell.Experiment)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range o.Without {
		text = "without " + name + "\n" + text
	}
	text += fmt.Sprintf("run %d\nrecord %d\n", runOf(cell, trial), bit(o.Record))
	c := exec.CommandContext(ctx, s.program)
	c.Stdin = strings.NewReader(text)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return nil, nil, fmt.Errorf("ns-3: %w: %s", err, firstLines(stderr.Bytes()))
	}
	return read(&stdout, cell, trial, o.Record)
}

// runOf returns ns-3's run number of a trial: trials with one number share their random draws.
func runOf(cell *plan.Cell, trial int) uint64 { return cell.Seed + uint64(trial) }
