package main

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// manyFields matches structs that may exceed the field limit: snapshots shown at once.
var manyFields = regexp.MustCompile(`(Info|Snapshot)$`)

// named is a declared type: its own methods and fields, and the types that it embeds.
type named struct {
	dir, name string
	at        string
	structure bool              // false for an interface or another type
	fields    int               // fields declared here; an embedded field counts once
	methods   map[string]string // maps the name to the file that declares it
	embedded  []typeName
}

// typeName names a type of this tree.
type typeName struct{ dir, name string }

// types returns the package-level types of the tree's non-test files.
func types(files []source) map[typeName]*named {
	all := map[typeName]*named{}
	get := func(dir, name string) *named {
		key := typeName{dir, name}
		if all[key] == nil {
			all[key] = &named{dir: dir, name: name, methods: map[string]string{}}
		}
		return all[key]
	}
	for _, s := range files {
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					get(s.dir(), receiver(d.Recv.List[0].Type)).methods[d.Name.Name] = s.path
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						t := get(s.dir(), spec.Name.Name)
						t.at = s.at(spec)
						t.declare(s, spec)
					}
				}
			}
		}
	}
	return all
}

func (t *named) declare(s source, spec *ast.TypeSpec) {
	switch typ := spec.Type.(type) {
	case *ast.StructType:
		t.structure, t.fields = true, typ.Fields.NumFields()
		for _, f := range typ.Fields.List {
			if len(f.Names) == 0 {
				t.embed(s, f.Type)
			}
		}
	case *ast.InterfaceType:
		for _, m := range typ.Methods.List {
			for _, n := range m.Names {
				t.methods[n.Name] = s.path
			}
			if len(m.Names) == 0 {
				t.embed(s, m.Type)
			}
		}
	}
}

// embed records an embedded type of this tree.
func (t *named) embed(s source, e ast.Expr) {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if index, ok := e.(*ast.IndexExpr); ok {
		e = index.X
	}
	switch e := e.(type) {
	case *ast.Ident:
		t.embedded = append(t.embedded, typeName{s.dir(), e.Name})
	case *ast.SelectorExpr:
		if id, ok := e.X.(*ast.Ident); ok {
			if dir, ok := s.imported(id.Name); ok {
				t.embedded = append(t.embedded, typeName{dir, e.Sel.Name})
			}
		}
	}
}

// imported returns the folder of this tree that a file imports under a name.
func (s source) imported(name string) (dir string, ok bool) {
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		dir, ours := strings.CutPrefix(p, module+"/")
		known := path.Base(dir)
		if i.Name != nil {
			known = i.Name.Name
		}
		if ours && known == name {
			return dir, true
		}
	}
	return "", false
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// promoted returns a type's methods and its number of fields, including those promoted from
// embedded types of this tree.
func promoted(all map[typeName]*named, name typeName) (methods map[string]string, fields int) {
	t := all[name]
	methods = map[string]string{}
	if t == nil {
		return methods, 0
	}
	fields = t.fields
	for _, e := range t.embedded {
		m, n := promoted(all, e)
		fields += n
		maps.Copy(methods, m)
	}
	maps.Copy(methods, t.methods)
	return methods, fields
}

// filesOf returns the number of files that declare a type's own methods.
func (t *named) filesOf() int {
	return len(slices.Compact(slices.Sorted(maps.Values(t.methods))))
}

// functions returns the lengths in lines of all functions of the non-test files, sorted.
func functions(files []source) []int {
	var all []int
	for _, s := range files {
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				all = append(all, s.span(f))
			}
		}
	}
	slices.Sort(all)
	return all
}

// span returns the number of lines of a node.
func (s source) span(n interface {
	Pos() token.Pos
	End() token.Pos
},
) int {
	return s.line(n.End()) - s.line(n.Pos()) + 1
}
