//go:build linux

package interop_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// recipe is the Containerfile.
const recipe = "../../packaging/Containerfile"

// instruction returns the elements of the JSON array in the recipe's line that begins with start.
func instruction(t *testing.T, start string) (words []string) {
	t.Helper()
	text, err := os.ReadFile(recipe)
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^` + start + ` (\[.*\])$`).FindSubmatch(text)
	require.NotNil(t, line, "%s in %s", start, recipe)
	require.NoError(t, json.Unmarshal(line[1], &words))
	return words
}

// imageContext makes the folder from which the image is built, and returns it.
func imageContext(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "node"), "../../cmd/node")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, string(said))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "run/tidepool"), 0o755))
	return dir
}

// The image's entry point works in a root that has only the files of the image and its volumes: no
// shell, no /tmp, no /etc/passwd, no /proc. It also works for a user without a name.
func TestImageInAnEmptyRoot(t *testing.T) {
	need(t)
	// The image's user must be able to read the root.
	root, err := os.MkdirTemp("", "tidepool-image") //nolint:usetesting // see above
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(root)) })
	require.NoError(t, os.Chmod(root, 0o755))
	program, err := os.ReadFile(filepath.Join(imageContext(t), "node"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "node"), program, 0o755)) //nolint:gosec // a program
	for _, folder := range []string{"results", "etc/tidepool", "run/tidepool"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
		require.NoError(t, os.Chown(filepath.Join(root, folder), 65532, 65532))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/tidepool/A.lnx"),
		fmt.Appendf(nil, "interface if0 10.0.0.1/24 127.0.0.1:%d\n", testenv.FreePort(t)),
		0o644)) //nolint:gosec // readable for another user

	file, err := elf.NewFile(bytes.NewReader(program))
	require.NoError(t, err)
	for _, p := range file.Progs {
		assert.NotEqual(t, elf.PT_INTERP, p.Type, "a static program needs no loader")
	}
	b := &bed{t: t}
	entry := instruction(t, "ENTRYPOINT")
	command := func(words ...string) *exec.Cmd {
		cmd := b.commandFor(10*patience, "")
		cmd.Path, cmd.Args, cmd.Err = words[0], words, nil
		cmd.Dir, cmd.Env = "/", []string{}
		cmd.SysProcAttr.Chroot = root
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65532, Gid: 65532}
		return cmd
	}
	assert.Contains(t, b.must(command(append(entry, "version")...)), "linux/")
	part := []string{
		"lab", "run", "tahoe-low", "--set", "duration=30s", "--out", "/results/x", "--no-figures",
		"--parts", "3", "--index", "1",
	}
	assert.Contains(t, b.must(command(append(entry, part...)...)), "cells/part-1-of-3.csv")
	collect := b.must(command(append(entry, "lab", "collect", "/results/x", "--archive", "0")...))
	assert.Regexp(t, `\ntidepool-results 0 1 [0-9a-f]{64}\n$`, collect)

	health := instruction(t, "HEALTHCHECK CMD")
	require.Error(t, command(health...).Run(), "no node runs")
	node := b.start(command(append(entry, "run", "/etc/tidepool/A.lnx", "--daemon", "--socket",
		"/run/tidepool/A.sock")...))
	require.Eventually(t, func() bool { return command(health...).Run() == nil }, 2*patience,
		50*time.Millisecond, "the node is healthy")
	node.stop(syscall.SIGTERM)
	require.Error(t, command(health...).Run(), "the node has stopped")
}

// The recipe builds an image with only the program and the user's folder for sockets. The image has
// the right user, entry point and health check.
func TestImageBuilds(t *testing.T) {
	need(t)
	var tool string
	for _, name := range []string{"podman", "buildah"} {
		if path, err := exec.LookPath(name); err == nil {
			tool = path
		}
	}
	if tool == "" {
		t.Skip("skip: needs podman or buildah")
	}
	dir := t.TempDir()
	b := &bed{t: t}
	store := []string{
		"--storage-driver", "vfs", "--root", filepath.Join(dir, "store"), "--runroot",
		filepath.Join(dir, "run"),
	}
	must := func(args ...string) {
		cmd := b.commandFor(10*patience, "")
		cmd.Path, cmd.Args, cmd.Err = tool, append(append([]string{tool}, store...), args...), nil
		b.must(cmd)
	}
	must("build", "--isolation", "chroot", "--format", "docker", "-t", "tidepool:test", "-f", recipe,
		imageContext(t))
	path := filepath.Join(dir, "image.tar")
	must("push", "tidepool:test", "docker-archive:"+path+":tidepool:test")

	archive, err := os.Open(path)
	require.NoError(t, err)
	defer archive.Close()
	files := untar(t, archive)
	var manifest []struct {
		Config string
		Layers []string
	}
	require.NoError(t, json.Unmarshal(files["manifest.json"].text, &manifest))
	require.Len(t, manifest, 1)
	var image struct {
		Config struct {
			User        string
			Entrypoint  []string
			Healthcheck struct{ Test []string }
		}
	}
	require.NoError(t, json.Unmarshal(files[manifest[0].Config].text, &image))
	assert.Equal(t, "65532:65532", image.Config.User)
	assert.Equal(t, instruction(t, "ENTRYPOINT"), image.Config.Entrypoint)
	assert.Equal(t, append([]string{"CMD"}, instruction(t, "HEALTHCHECK CMD")...),
		image.Config.Healthcheck.Test)
	owners := map[string]int{}
	for _, layer := range manifest[0].Layers {
		for name, f := range untar(t, bytes.NewReader(files[layer].text)) {
			owners[strings.Trim(name, "/")] = f.Uid
		}
	}
	assert.Equal(t, map[string]int{"node": 0, "run": 65532, "run/tidepool": 65532}, owners)
}

// packed is a file or folder in an archive.
type packed struct {
	*tar.Header
	text []byte
}

// untar returns the contents of an archive, which may be compressed.
func untar(t *testing.T, r io.Reader) map[string]packed {
	t.Helper()
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(text))
		require.NoError(t, err)
		text, err = io.ReadAll(z)
		require.NoError(t, err)
	}
	files := map[string]packed{}
	for a := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := a.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		text, err := io.ReadAll(a)
		require.NoError(t, err)
		files[h.Name] = packed{h, text}
	}
}
