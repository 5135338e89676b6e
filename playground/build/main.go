// Command build writes the playground's static files: `make playground`.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/files"
)

const program = "tidepool.wasm.gz"

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
	code, err := compile(root, out)
	if err != nil {
		return err
	}
	if code, err = exportGlobals(code); err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = w.Write(code)
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	if err := files.Overwrite(filepath.Join(out, program), packed.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Printf("%s: the program has %.1f MB, compressed %.1f MB; the other files %.1f MB\n", out,
		float64(len(code))/1e6, float64(packed.Len())/1e6, float64(others(out))/1e6)
	return nil
}

// join makes the network's page ask this page instead of a server.
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

func compile(root, out string) ([]byte, error) {
	abs, err := filepath.Abs(filepath.Join(out, "tidepool.wasm"))
	if err != nil {
		return nil, err
	}
	// Without the inlining of other packages the compressed program is a tenth smaller, and the
	// network as fast. Without all inlining it is half as fast.
	const ours = "github.com/tidepool-net/tidepool/..."
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-buildmode=c-shared",
		"-tags=nethttpomithttp2", "-gcflags=all=-l", "-gcflags="+ours+"=", "-gcflags=runtime/...=",
		"-gcflags=internal/...=", "-o", abs, "./playground/wasm")
	c.Dir, c.Stderr = root, os.Stderr
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("go build: %w", err)
	}
	code, err := files.Text(abs, files.MaxData)
	return code, errors.Join(err, os.Remove(abs))
}

func others(out string) (size int64) {
	_ = filepath.WalkDir(out, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == program {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size
}

// Sections of a module, and the kind of an export
// (https://www.w3.org/TR/wasm-core-2/#binary-module).
const (
	globalSection = 6
	exportSection = 7
	globalExport  = 3
)

var errModule = errors.New("not a WebAssembly module with globals and exports")

// exportGlobals adds exports global0, global1, … of all globals. With the memory they are the whole
// state of an instance at rest, so that the page can save and restore it.
func exportGlobals(code []byte) ([]byte, error) {
	if len(code) < 8 {
		return nil, errModule
	}
	out, rest := bytes.Clone(code[:8]), code[8:]
	globals, exported := uint64(0), false
	for len(rest) > 0 {
		kind := rest[0]
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, errModule
		}
		body := rest[1+n : 1+n+int(size)]
		rest = rest[1+n+int(size):]
		count, n := binary.Uvarint(body)
		switch kind {
		case globalSection:
			globals = count
		case exportSection:
			exported = globals > 0
			own := body[n:]
			body = append(binary.AppendUvarint(nil, count+globals), own...)
			for g := range globals {
				name := fmt.Sprintf("global%d", g)
				body = append(append(body, byte(len(name))), name...)
				body = binary.AppendUvarint(append(body, globalExport), g)
			}
		}
		out = append(binary.AppendUvarint(append(out, kind), uint64(len(body))), body...)
	}
	if !exported {
		return nil, errModule
	}
	return out, nil
}
