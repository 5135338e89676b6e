package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// index maps each clause to its citations.
type index map[clause]*citers

// citers lists the citations by file: functions, types or scripts in it.
type citers struct{ code, tests map[string][]string }

func (x index) add(c clause, test bool, file, name string) {
	if x[c] == nil {
		x[c] = &citers{code: map[string][]string{}, tests: map[string][]string{}}
	}
	to := x[c].code
	if test {
		to = x[c].tests
	}
	if names := to[file]; name == "" {
		to[file] = names // the citation belongs to the whole file
	} else if !slices.Contains(names, name) {
		to[file] = append(names, name)
	}
}

// exempt are folders whose citations are only examples.
var exempt = []string{"internal/ci", "internal/tcp/drill"}

// read collects the citations of a tree.
func read(tree fs.FS) (index, error) {
	files, err := collect(tree)
	if err != nil {
		return nil, err
	}
	x := index{}
	for _, f := range files {
		switch {
		case slices.ContainsFunc(exempt, func(dir string) bool { return under(f.path, dir) }):
		case path.Ext(f.path) == ".pkt":
			for _, c := range clauses(f.text) {
				x.add(c, true, path.Dir(f.path), strings.TrimSuffix(path.Base(f.path), ".pkt"))
			}
		case path.Ext(f.path) == ".go":
			if err := x.source(f.path, f.text); err != nil {
				return nil, err
			}
		}
	}
	return x, nil
}

// source collects the citations of one Go file.
func (x index) source(name, text string) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(name, "_test.go")
	for _, group := range file.Comments {
		for _, c := range clauses(group.Text()) {
			x.add(c, test, name, within(file, group))
		}
	}
	if !test {
		return nil
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if c, ok := ofName(f.Name.Name); ok {
			x.add(c, true, name, f.Name.Name)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
				for _, c := range clauses(s.Value) {
					x.add(c, true, name, f.Name.Name)
				}
			}
			return true
		})
	}
	return nil
}

// within returns the name of the declaration that contains or follows a comment, or "" for a
// comment about the file.
func within(file *ast.File, at *ast.CommentGroup) string {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if covers(d, d.Doc, at) {
				return method(d)
			}
		case *ast.GenDecl:
			if !covers(d, d.Doc, at) {
				continue
			}
			for _, s := range d.Specs {
				if name, ok := specified(s, at); ok || len(d.Specs) == 1 {
					return name
				}
			}
			return ""
		}
	}
	return ""
}

func covers(n ast.Node, doc *ast.CommentGroup, at ast.Node) bool {
	from := n.Pos()
	if doc != nil {
		from = doc.Pos()
	}
	return from <= at.Pos() && at.Pos() <= n.End()
}

// method returns a function's name, with its receiver's type if it has one.
func method(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if g, ok := t.(*ast.IndexExpr); ok {
		t = g.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// specified returns the name that one line of a declaration declares, and whether the comment is
// about it.
func specified(s ast.Spec, at *ast.CommentGroup) (string, bool) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return s.Name.Name, covers(s, s.Doc, at)
	case *ast.ValueSpec:
		return s.Names[0].Name, covers(s, s.Doc, at) || s.Comment == at
	}
	return "", false
}
