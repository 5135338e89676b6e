// Command upstream runs the tests of other modules over tidepool, at three loss rates, and without
// tidepool:
//
//	go run ./upstream [MODULE@VERSION[/PACKAGE][#RUN]...]
//
// RUN is the pattern for -run; it is for modules in which few tests use TCP.
//
// It copies the module from the module cache to a temporary folder, and adds a file to its tests.
// With `go test -overlay`, it replaces TCP sockets of package net at loopback addresses by sockets
// of two hosts connected by a link. Listeners are on one host, clients on the other. All other
// sockets remain those of the kernel. The table counts tests that passed, including subtests.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// suites are those listed in adapters/README.md.
var suites = []string{
	"golang.org/x/crypto@v0.58.0/ssh",
	"github.com/libp2p/go-libp2p@v0.51.0/p2p/transport/tcp",
	"github.com/hashicorp/raft@v1.8.0#NetworkTransport|TCPTransport",
	"github.com/hashicorp/yamux@v0.1.2",
	"github.com/gorilla/websocket@v1.5.3",
	"github.com/alicebob/miniredis/v2@v2.40.0/...",
	"google.golang.org/grpc@v1.85.0/internal/transport",
}

//go:embed sockets.go.txt
var sockets string

//go:embed hook.go.txt
var hook string

const (
	ifVirtual = "if fd.virtual != nil { return "
	ifConn    = "if c.fd.virtual != nil { return "
)

// patches of package net: each has a line to find, and the line to add after it.
var patches = map[string][][2]string{
	"fd_posix.go": {
		{`type netFD struct \{`, "virtual *virtual"},
		{`func \(fd \*netFD\) Close\(.*`, ifVirtual + "fd.virtual.close() }"},
		{`func \(fd \*netFD\) shutdown\(.*`, ifVirtual + "fd.virtual.shutdown(how) }"},
		{`func \(fd \*netFD\) Read\(.*`, ifVirtual + "fd.virtual.read(p) }"},
		{`func \(fd \*netFD\) Write\(.*`, ifVirtual + "fd.virtual.write(p) }"},
		{
			`func \(fd \*netFD\) (Set\w*Deadline)\(.*`,
			ifVirtual + "bare(fd.virtual.deadlines().$1(t)) }",
		},
	},
	"fd_unix.go": {
		{`func \(fd \*netFD\) accept\(.*`, ifVirtual + "fd.virtual.accept(fd) }"},
		{`func \(fd \*netFD\) dup\(.*`, ifVirtual + "nil, syscall.EINVAL }"},
	},
	"ipsock_posix.go": {{
		`func internetSocket\(.*`,
		"fd, err, ok := virtualSocket(ctx, net, laddr, raddr, sotype); if ok { return fd, err }",
	}},
	"tcpsock_posix.go": {
		{`func \(c \*TCPConn\) readFrom\(.*`, ifConn + "genericReadFrom(c, r) }"},
		{`func \(c \*TCPConn\) writeTo\(.*`, ifConn + "genericWriteTo(c, w) }"},
	},
	"writev_unix.go": {{
		`func \(c \*conn\) writeBuffers\(.*`, ifConn + "c.fd.virtual.writeBuffers(c, v) }",
	}},
	"rawconn.go": {
		{`func \(c \*rawConn\) Control\(.*`, ifConn + "c.fd.virtual.control(f) }"},
		{`func \(c \*rawConn\) (?:Read|Write)\(.*`, ifConn + "syscall.EINVAL }"},
	},
	"sockopt_posix.go":    {{`func set\w+\(fd \*netFD.*`, ifVirtual + "nil }"}},
	"tcpsockopt_posix.go": {{`func set\w+\(fd \*netFD.*`, ifVirtual + "nil }"}},
	"tcpsockopt_unix.go":  {{`func set\w+\(fd \*netFD.*`, ifVirtual + "nil }"}},
}

func main() {
	list := os.Args[1:]
	if len(list) == 0 {
		list = suites
	}
	fmt.Println("| Suite | Without | 0 % | 1 % | 5 % | Connections |\n|---|---|---|---|---|---|")
	for _, suite := range list {
		if err := run(suite); err != nil {
			fmt.Fprintf(os.Stderr, "upstream: %s: %v\n", suite, err)
			os.Exit(1)
		}
	}
}

// run prints a suite's line in the table.
func run(suite string) error {
	spec, pattern, _ := strings.Cut(suite, "#")
	name, packages := spec, "."
	if at := strings.Index(spec, "@"); at >= 0 && strings.Contains(spec[at:], "/") {
		name, packages, _ = cut(spec, at)
	}
	dir, err := os.MkdirTemp("", "upstream-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := prepare(name, dir)
	if err != nil {
		return err
	}
	plain, err := count(dir, packages, "-run="+pattern)
	if err != nil {
		return err
	}
	line := []string{"`" + suite + "`", plain.String()}
	connections := filepath.Join(dir, "connections")
	for _, loss := range []string{"0", "0.01", "0.05"} {
		got, err := count(dir, packages, "-run="+pattern, "-tags=tidepool", "-overlay="+overlay,
			"TIDEPOOL_LOSS="+loss, "TIDEPOOL_CONNECTIONS="+connections)
		if err != nil {
			return err
		}
		for test := range got.failed {
			if !plain.failed[test] {
				fmt.Fprintf(os.Stderr, "%s: fails with %s loss only: %s\n%s\n", suite, loss, test,
					got.output[test])
			}
		}
		line = append(line, got.String())
	}
	info, err := os.Stat(connections)
	if err != nil {
		return fmt.Errorf("no connection went over tidepool: %w", err)
	}
	fmt.Printf("| %s | %d |\n", strings.Join(line, " | "), info.Size())
	return nil
}

// cut separates MODULE@VERSION from a folder.
func cut(suite string, at int) (name, packages string, ok bool) {
	version, folder, ok := strings.Cut(suite[at:], "/")
	return suite[:at] + version, "./" + folder, ok
}

// prepare copies a module, adds the hook to its tests, and writes the overlay.
func prepare(name, dir string) (overlay string, err error) {
	out, err := command(".", "go", "mod", "download", "-json", name)
	if err != nil {
		return "", err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return "", err
	}
	copied := filepath.Join(dir, "module")
	if err := os.CopyFS(copied, os.DirFS(module.Dir)); err != nil {
		return "", err
	}
	// Some modules keep the dependencies of their tests in a separate file.
	for _, ext := range []string{".mod", ".sum"} {
		err := os.Rename(filepath.Join(copied, "go_test"+ext), filepath.Join(copied, "go"+ext))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	root, err := filepath.Abs("..")
	if err != nil {
		return "", err
	}
	const ours = "github.com/tidepool-net/tidepool"
	if _, err := command(copied, "go", "mod", "edit", "-go=1.26.0", "-require="+ours+"@v0.0.0",
		"-replace="+ours+"="+root); err != nil {
		return "", err
	}
	if err := addHooks(copied); err != nil {
		return "", err
	}
	return patch(dir)
}

var packageLine = regexp.MustCompile(`(?m)^package (\w+)`)

// addHooks adds the hook to each folder with tests.
func addHooks(root string) error {
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(filepath.Dir(path), "tidepool_hook_test.go")
		if _, err := os.Stat(to); err == nil {
			return nil
		}
		found := packageLine.FindSubmatch(text)
		if found == nil {
			return nil
		}
		text = []byte(strings.Replace(hook, "PACKAGE", string(found[1]), 1))
		return os.WriteFile(to, text, 0o600)
	})
}

// patch writes modified copies of package net's files, and the overlay that names them.
func patch(dir string) (overlay string, err error) {
	out, err := command(".", "go", "env", "GOROOT")
	if err != nil {
		return "", err
	}
	source := filepath.Join(strings.TrimSpace(string(out)), "src", "net")
	replace := map[string]string{}
	put := func(name, text string) error {
		to := filepath.Join(dir, name)
		replace[filepath.Join(source, name)] = to
		return os.WriteFile(to, []byte(text), 0o600)
	}
	for name, list := range patches {
		text, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		for _, p := range list {
			begin := regexp.MustCompile(`(?m)^` + p[0] + `$`)
			if !begin.Match(text) {
				return "", fmt.Errorf("%s has no line %q: the patches are for Go 1.26", name, p[0])
			}
			text = begin.ReplaceAll(text, []byte("$0\n\t"+p[1]))
		}
		if err := put(name, string(text)); err != nil {
			return "", err
		}
	}
	if err := put("virtual.go", sockets); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// result counts the tests of a run, including subtests.
type result struct {
	passed int
	failed map[string]bool
	output map[string]string // output of the tests that did not pass
}

func (r result) String() string {
	if len(r.failed) == 0 {
		return fmt.Sprintf("%d", r.passed)
	}
	return fmt.Sprintf("%d, %d failed", r.passed, len(r.failed))
}

// withoutDescriptors makes gRPC read with net.Conn, both with and without tidepool. By default it
// reads from the descriptor of a TCP socket, and a virtual socket has none.
const withoutDescriptors = "GRPC_GO_EXPERIMENTAL_HTTP_FRAMER_READ_BUFFER_POOLING=false"

// count runs the tests. Arguments that do not begin with - are set in the environment.
func count(dir, packages string, words ...string) (result, error) {
	cmd := exec.Command("go", "test", "-mod=mod", "-vet=off", "-json", "-count=1", "-timeout=10m")
	cmd.Env = append(os.Environ(), withoutDescriptors)
	for _, w := range words {
		if strings.HasPrefix(w, "-") {
			cmd.Args = append(cmd.Args, w)
		} else {
			cmd.Env = append(cmd.Env, w)
		}
	}
	cmd.Args = append(cmd.Args, packages)
	cmd.Dir = filepath.Join(dir, "module")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output() // fails if a test fails
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return result{}, err
	}
	r := result{failed: map[string]bool{}, output: map[string]string{}}
	explained := map[string]bool{}
	for line := range bytes.Lines(out) {
		var event struct{ Action, Package, Test, Output string }
		if json.Unmarshal(line, &event) != nil {
			continue
		}
		name := event.Package + "." + event.Test
		switch {
		case event.Action == "build-fail":
			return r, fmt.Errorf("%s\n%s", errs.Bytes(), out)
		case event.Action == "output":
			r.output[name] += event.Output
		case event.Action == "pass" && event.Test != "":
			r.passed++
			delete(r.output, name)
		case event.Action == "fail" && event.Test != "":
			r.failed[name], explained[event.Package] = true, true
		case event.Action == "fail" && !explained[event.Package]:
			r.failed[event.Package+" ended in the middle"] = true
			r.output[event.Package+" ended in the middle"] = r.output[name]
		}
	}
	if r.passed == 0 {
		return r, fmt.Errorf("no test passed: %s\n%s", errs.Bytes(), out)
	}
	return r, nil
}

// command runs a program in a folder.
func command(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("%s %s: %s", name, strings.Join(args, " "), exit.Stderr)
	}
	return out, err
}
