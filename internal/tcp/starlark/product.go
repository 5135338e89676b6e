package starlark

import (
	"errors"
	"fmt"
	"math/bits"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Multiplication is the only operator that can create a huge value from two small ones, such as [0]
// * 1000000000, before the meter can check it. So the package replaces products by calls of a
// checked function. It keeps products with a small number or a fraction, which are the most common.

// productName is not a valid identifier, so scripts cannot call it.
const productName = "*"

// smallFactor is the largest literal factor whose products are not checked.
const smallFactor = 1000

// guardProducts replaces a file's products by calls.
func guardProducts(f *syntax.File) {
	syntax.Walk(f, func(n syntax.Node) bool {
		if s, ok := n.(*syntax.AssignStmt); ok && s.Op == syntax.STAR_EQ {
			if again := copied(s.LHS); again != nil && !harmless(s.RHS) {
				s.Op, s.RHS = syntax.EQ, productCall(s.OpPos, again, s.RHS)
			}
		}
		for _, at := range children(n) {
			b, ok := (*at).(*syntax.BinaryExpr)
			if ok && b.Op == syntax.STAR && !harmless(b.X) && !harmless(b.Y) {
				*at = productCall(b.OpPos, b.X, b.Y)
			}
		}
		return true
	})
}

func productCall(at syntax.Position, x, y syntax.Expr) syntax.Expr {
	return &syntax.CallExpr{
		Fn:     &syntax.Ident{NamePos: at, Name: productName},
		Lparen: at, Args: []syntax.Expr{x, y}, Rparen: at,
	}
}

// copied returns a copy of an expression that is a variable or an attribute of one, and nil for
// other expressions.
func copied(e syntax.Expr) syntax.Expr {
	switch e := e.(type) {
	case *syntax.Ident:
		return &syntax.Ident{NamePos: e.NamePos, Name: e.Name}
	case *syntax.DotExpr:
		if x := copied(e.X); x != nil {
			name := &syntax.Ident{NamePos: e.Name.NamePos, Name: e.Name.Name}
			return &syntax.DotExpr{X: x, Dot: e.Dot, NamePos: e.NamePos, Name: name}
		}
	}
	return nil
}

// harmless reports whether products with e need no check: e is a small number, or a fraction, which
// can only multiply numbers.
func harmless(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Literal:
		n, whole := e.Value.(int64)
		return e.Token == syntax.FLOAT || whole && n <= smallFactor
	case *syntax.ParenExpr:
		return harmless(e.X)
	case *syntax.BinaryExpr:
		return e.Op == syntax.SLASH
	}
	return false
}

// children returns pointers to the expressions in a node.
func children(n syntax.Node) []*syntax.Expr {
	switch n := n.(type) {
	case *syntax.AssignStmt:
		return []*syntax.Expr{&n.LHS, &n.RHS}
	case *syntax.ExprStmt:
		return []*syntax.Expr{&n.X}
	case *syntax.IfStmt:
		return []*syntax.Expr{&n.Cond}
	case *syntax.WhileStmt:
		return []*syntax.Expr{&n.Cond}
	case *syntax.ForStmt:
		return []*syntax.Expr{&n.X}
	case *syntax.ReturnStmt:
		return []*syntax.Expr{&n.Result}
	case *syntax.ForClause:
		return []*syntax.Expr{&n.X}
	case *syntax.IfClause:
		return []*syntax.Expr{&n.Cond}
	case *syntax.Comprehension:
		return []*syntax.Expr{&n.Body}
	case *syntax.ListExpr:
		return places(n.List)
	case *syntax.TupleExpr:
		return places(n.List)
	case *syntax.CallExpr:
		return append(places(n.Args), &n.Fn)
	case *syntax.LambdaExpr:
		return []*syntax.Expr{&n.Body}
	}
	return operands(n)
}

func operands(n syntax.Node) []*syntax.Expr {
	switch n := n.(type) {
	case *syntax.ParenExpr:
		return []*syntax.Expr{&n.X}
	case *syntax.DotExpr:
		return []*syntax.Expr{&n.X}
	case *syntax.DictEntry:
		return []*syntax.Expr{&n.Key, &n.Value}
	case *syntax.CondExpr:
		return []*syntax.Expr{&n.Cond, &n.True, &n.False}
	case *syntax.UnaryExpr:
		return []*syntax.Expr{&n.X}
	case *syntax.BinaryExpr:
		return []*syntax.Expr{&n.X, &n.Y}
	case *syntax.SliceExpr:
		return []*syntax.Expr{&n.X, &n.Lo, &n.Hi, &n.Step}
	case *syntax.IndexExpr:
		return []*syntax.Expr{&n.X, &n.Y}
	}
	return nil
}

func places(list []syntax.Expr) []*syntax.Expr {
	all := make([]*syntax.Expr, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

// product returns x * y, or an error if the result would be too large.
func product(
	_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple,
) (starlark.Value, error) {
	x, y := args[0], args[1]
	if _, ok := x.(starlark.Int); !ok {
		x, y = y, x
	}
	if n, ok := x.(starlark.Int); ok {
		if what := excess(n, y); what != "" {
			return nil, errors.New(what)
		}
	}
	return starlark.Binary(syntax.STAR, args[0], args[1])
}

// excess describes how n times y exceeds a limit.
func excess(n starlark.Int, y starlark.Value) string {
	factor, small := n.Int64()
	size, most := extent(y)
	if times, ok := y.(starlark.Int); ok {
		if _, also := times.Int64(); small && also {
			return ""
		}
		if size = n.BigInt().BitLen() + times.BigInt().BitLen(); size > most {
			return fmt.Sprintf("a product of %d bits: must be at most %d", size, most)
		}
		return ""
	}
	if most == 0 || n.Sign() <= 0 {
		return ""
	}
	high, values := bits.Mul64(uint64(factor), uint64(size))
	if !small || high > 0 || values > uint64(most) {
		return fmt.Sprintf("%v * %d values: must be at most %d", brief(n), size, most)
	}
	return ""
}
