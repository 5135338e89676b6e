// Command build writes the playground's static files: `make playground`.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab"
)

// The file and the package of a program that is loaded on demand.
const (
	laboratory = "lab.wasm.br"
	labPackage = "./playground/wasm/lab"
)

// programs are the packages of the WebAssembly programs by their files.
var programs = []struct{ file, pkg string }{
	{"tidepool.wasm.br", "./playground/wasm"},
	{laboratory, labPackage},
}

func main() {
	out := flag.String("o", "bin/playground", "the folder to write; it is replaced")
	root := flag.String("root", ".", "the root of the source tree")
	flag.Parse()
	if err := build(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(1)
	}
}

func build(root, out string) error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.CopyFS(out, os.DirFS(filepath.Join(root, "playground", "site"))); err != nil {
		return err
	}
	learn := os.DirFS(filepath.Join(root, "docs", "learn"))
	if err := os.CopyFS(filepath.Join(out, "learn"), learn); err != nil {
		return err
	}
	page := filepath.Join(out, "page")
	if err := os.CopyFS(page, api.Page()); err != nil {
		return err
	}
	if err := join(filepath.Join(page, "index.html")); err != nil {
		return err
	}
	if err := writePresets(filepath.Join(out, "presets.json")); err != nil {
		return err
	}
	for _, p := range programs {
		if err := write(root, p.pkg, filepath.Join(out, p.file)); err != nil {
			return err
		}
	}
	if err := listFiles(out); err != nil {
		return err
	}
	err := checkVisit(out)
	if version := runtime.Version(); !tableKnown(version) {
		fmt.Printf("%s is not %s: the programs keep their names and line numbers, and are "+
			"larger. `GOTOOLCHAIN=%s.0 make playground` makes the smaller ones.\n",
			version, tableGo, tableGo)
		if errors.Is(err, errLarge) {
			return nil
		}
	}
	return err
}

// writePresets writes the experiments of the laboratory, by their names.
func writePresets(name string) error {
	list := map[string]string{}
	for _, g := range lab.PresetGroups() {
		for _, p := range g.Presets {
			list[p.Name] = string(p.Text)
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return files.Overwrite(name, text, 0o644)
}

// write compiles and compresses a program.
func write(root, pkg, name string) error {
	code, err := compile(root, pkg, strings.TrimSuffix(name, ".br"))
	if err != nil {
		return err
	}
	module, err := split(code)
	if err != nil {
		return err
	}
	if err := errors.Join(exportGlobals(module), joinData(module)); err != nil {
		return err
	}
	data, err := find(module, dataSection)
	if err != nil {
		return err
	}
	if err := shrink(data.body, pkg, runtime.Version()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	code = assemble(module)
	packed, err := pack(code)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %.1f MB, compressed %.1f MB\n", name, float64(len(code))/1e6,
		float64(len(packed))/1e6)
	return files.Overwrite(name, packed, 0o644)
}

// shrink removes the data that the page does not need from a program. version is the version of Go.
func shrink(data []byte, pkg, version string) error {
	if n := dropFonts(data); (n > 0) != (pkg == labPackage) {
		return fmt.Errorf("%d fonts with outlines: must be some in %s and none elsewhere", n,
			labPackage)
	}
	if tableKnown(version) && dropLines(data) == 0 {
		return fmt.Errorf("%s: its table of functions is unknown: adapt playground/build/lines.go "+
			"to src/internal/abi/symtab.go", version)
	}
	return nil
}

// join loads backend.js into the network's page, so that its requests go to the enclosing page
// instead of a server.
func join(name string) error {
	text, err := files.Text(name, files.MaxText)
	if err != nil {
		return err
	}
	const head = "<head>"
	if !strings.Contains(string(text), head) {
		return fmt.Errorf("%s has no %s", name, head)
	}
	script := head + "\n    <script src=\"../backend.js\"></script>"
	return files.Overwrite(name, []byte(strings.Replace(string(text), head, script, 1)), 0o644)
}

// inlined lists the packages whose functions are inlined: those that process packets. Inlining in
// all packages would make the compressed program an eighth larger and no faster. Without inlining,
// the program would run at half the speed.
var inlined = []string{
	"runtime/...", "internal/...", "crypto/internal/...", "encoding/binary", "math/bits",
	"net/netip",
	ours + "internal/checksum", ours + "internal/clock", ours + "internal/buffer",
	ours + "internal/netem", ours + "internal/link", ours + "internal/ip", ours + "internal/icmp",
	ours + "internal/rdt", ours + "internal/udp", ours + "internal/tcp/...",
	ours + "internal/stack", ours + "internal/node", ours + "playground",
	ours + "internal/sim", ours + "internal/lab/simulation", "go.starlark.net/starlark",
}

const ours = "github.com/tidepool-net/tidepool/"

func compile(root, pkg, name string) ([]byte, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	tool, done, err := goTool()
	if err != nil {
		return nil, err
	}
	defer done()
	overlay, err := withoutTLS(tool, root, filepath.Dir(abs))
	if err != nil {
		return nil, err
	}
	args := []string{
		"build", "-trimpath", "-ldflags=-s -w", "-buildmode=c-shared", "-overlay=" + overlay,
		"-tags=nethttpomithttp2", "-gcflags=all=-l",
	}
	for _, packages := range inlined {
		args = append(args, "-gcflags="+packages+"=")
	}
	c := tool(append(args, "-o", abs, pkg)...)
	c.Dir, c.Stderr = root, os.Stderr
	c.Env = append(c.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("go build: %w", err)
	}
	code, err := files.Text(abs, files.MaxData)
	return code, errors.Join(err, os.Remove(overlay), os.Remove(abs))
}

// goTool returns a function that makes go commands, and a function that removes their temporary
// files. A go command refuses an -overlay of the standard library of a Go version that it has
// downloaded, because those files are in its module cache. It accepts the -overlay if its GOROOT is
// a symbolic link to that version.
func goTool() (tool func(args ...string) *exec.Cmd, done func(), err error) {
	text, err := exec.Command("go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go env: %w", err)
	}
	dirs := strings.Split(string(text), "\n")
	if !strings.HasPrefix(dirs[0], dirs[1]+string(filepath.Separator)) {
		return func(args ...string) *exec.Cmd { return exec.Command("go", args...) }, func() {}, nil
	}
	temporary, err := os.MkdirTemp("", "playground")
	if err != nil {
		return nil, nil, err
	}
	done = func() { _ = os.RemoveAll(temporary) }
	link := filepath.Join(temporary, "go")
	if err := os.Symlink(dirs[0], link); err != nil {
		done()
		return nil, nil, err
	}
	return func(args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(link, "bin", "go"), args...)
		c.Env = append(os.Environ(), "GOROOT="+link, "GOTOOLCHAIN=local")
		return c
	}, done, nil
}

// withoutTLS writes a file for -overlay that replaces crypto/tls by playground/build/tls.
func withoutTLS(tool func(args ...string) *exec.Cmd, root, out string) (string, error) {
	text, err := tool("list", "-f",
		`{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}`, "crypto/tls").Output()
	if err != nil {
		return "", fmt.Errorf("go list crypto/tls: %w", err)
	}
	replace := map[string]string{}
	for name := range strings.FieldsSeq(string(text)) {
		replace[name] = "" // removed
	}
	own, err := filepath.Abs(filepath.Join(root, "playground", "build", "tls", "tls.go"))
	if err != nil {
		return "", err
	}
	for name := range replace {
		replace[filepath.Join(filepath.Dir(name), "tls.go")] = own
		break
	}
	text, err = json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name, err := filepath.Abs(filepath.Join(out, "overlay.json"))
	return name, errors.Join(err, files.Overwrite(name, text, 0o644))
}

// maxVisit limits the compressed bytes that a first visit loads.
const maxVisit = 4_000_000

var errLarge = errors.New("a first visit loads too much")

// checkVisit checks the size of what a first visit loads from a site whose server compresses text.
func checkVisit(out string) error {
	var size, program int64
	err := filepath.WalkDir(out, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == laboratory {
			return err
		}
		text, err := files.Text(name, files.MaxData)
		if err != nil {
			return err
		}
		if filepath.Ext(name) == ".br" {
			program += int64(len(text))
			return nil
		}
		text, err = compress(text)
		size += int64(len(text))
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("%s: a first visit loads %.2f MB: program %.2f MB, other files %.2f MB\n",
		out, float64(program+size)/1e6, float64(program)/1e6, float64(size)/1e6)
	if size += program; size > maxVisit {
		return fmt.Errorf("%s: %w: %d bytes; the limit is %d", out, errLarge, size, maxVisit)
	}
	return nil
}
