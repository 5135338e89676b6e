// Package web is the page of a network that runs, as it is served: the files in dist are made by
// `make web` from the sources in web/ at the tree's root, and are committed, so that a build needs
// nothing but Go.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files are the page's; index.html is the first.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic("BUG: web: dist is embedded: " + err.Error())
	}
	return files
}
