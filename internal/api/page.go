package api

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// dist is the output of `make web`, which builds the page in web/. It is committed, so that a build
// needs only Go.
//
//go:embed all:dist
var dist embed.FS

// Page returns the files of the page. It starts with index.html.
func Page() fs.FS {
	page, err := fs.Sub(dist, "dist")
	if err != nil {
		panic("BUG: api: dist is embedded: " + err.Error())
	}
	return page
}

// policy allows a page to load only what this server serves, and images in data URLs.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'"

type asset struct {
	text []byte
	as   string
	tag  string
}

// page is the page's files by path.
type page map[string]*asset

func readPage(files fs.FS) (page, error) {
	assets := page{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		a := &asset{text: text, as: typeOf(name), tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
		assets["/"+name] = a
		if name == "index.html" {
			assets["/"] = a
		}
		return nil
	})
	return assets, err
}

// typeOf returns a file's media type. It does not use the system's table, because that differs
// between machines.
func typeOf(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return mime.TypeByExtension(ext)
	}
}

// asset returns the page's file at a path, or nil if there is no such file. The files are public,
// but the data that they show is not.
func (p page) asset(r *http.Request) *asset {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	return p[r.URL.Path]
}

// ServeHTTP serves all paths outside the API.
func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := p.asset(r)
	if a == nil {
		writeProblem(w, fmt.Errorf("%s: %w; /v1/openapi.json lists the paths", r.URL.Path,
			errNoSuchPath))
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.as)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", a.tag)
	if strings.Contains(r.Header.Get("If-None-Match"), a.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_ = write(w, a.text, hangs)
	}
}
