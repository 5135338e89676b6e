package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// source is one parsed Go file of the repository.
type source struct {
	path string // path from the module's root, with slashes
	test bool
	fset *token.FileSet
	file *ast.File
}

// maxTextBytes is more than the size of any file that a person wrote.
const maxTextBytes = 1 << 20

// text is one file of the repository that is not binary.
type text struct{ path, text string }

// parse returns the tree's Go files, except those in testdata.
func parse(files []text) ([]source, error) {
	var all []source
	for _, f := range files {
		if path.Ext(f.path) != ".go" || strings.Contains(f.path, "testdata/") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, f.path, f.text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		test := strings.HasSuffix(f.path, "_test.go")
		all = append(all, source{path: f.path, test: test, fset: fset, file: file})
	}
	return all, nil
}

// collect reads the tree, except built, fetched and hidden files.
func collect(tree fs.FS) ([]text, error) {
	skipped := []string{"bin", "demo-out", "dist", "node_modules"}
	var all []text
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		hidden := strings.HasPrefix(base, ".") && name != "." && base != ".ci"
		if d.IsDir() {
			if slices.Contains(skipped, base) || hidden && base != ".github" {
				return fs.SkipDir
			}
			return nil
		}
		if base == ".git" {
			return nil // the .git file of a linked work tree
		}
		info, err := d.Info()
		if err != nil || !d.Type().IsRegular() || info.Size() > maxTextBytes {
			return err
		}
		b, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		if !bytes.ContainsRune(b, 0) {
			all = append(all, text{path: name, text: string(b)})
		}
		return nil
	})
	return all, err
}

func (s source) line(p token.Pos) int { return s.fset.Position(p).Line }

// at returns where a node is, as FILE:LINE.
func (s source) at(n ast.Node) string { return s.path + ":" + strconv.Itoa(s.line(n.Pos())) }

func (s source) dir() string { return path.Dir(s.path) }

// lines returns how many lines the file has.
func (s source) lines() int { return s.line(s.file.FileEnd) }
