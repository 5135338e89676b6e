package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tidepool-net/tidepool/internal/files"
)

// listFiles writes the version and the names of a site's files into its service worker.
func listFiles(out string) error {
	const worker = "sw.js"
	list, all := []string{"./"}, sha256.New()
	site := os.DirFS(out)
	err := fs.WalkDir(site, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(site, name)
		fmt.Fprintf(all, "%s %d %s", name, len(text), text)
		// index.html is listed as ./
		if name != worker && name != laboratory && name != "index.html" {
			list = append(list, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	names, err := json.Marshal(list)
	if err != nil {
		return err
	}
	code, err := fs.ReadFile(site, worker)
	if err != nil {
		return err
	}
	version := fmt.Sprintf("%.6x", all.Sum(nil))
	text := fmt.Appendf(nil, "const version = %q, files = %s;\n%s", version, names, code)
	return files.Overwrite(filepath.Join(out, worker), text, 0o644)
}
