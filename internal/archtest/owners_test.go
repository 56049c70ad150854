package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"testing"
)

// takesApart are the functions of package strings that look into a text.
var takesApart = regexp.MustCompile(`^(Cut|Split|Has|Trim|Contains|Index|LastIndex|Fields|Replace)`)

var anOwner = regexp.MustCompile(`^[oO]wner(s|Of.*)?$`)

// TestNobodyReadsOwnersBack: who owns a row of the plan is a value (plan.Owner). Its text is for people; no code looks
// into it for the object.
func TestNobodyReadsOwnersBack(t *testing.T) {
	for _, f := range files(t) {
		if !under(f.folder, "internal", "cmd") {
			continue
		}
		for _, call := range callsOnOwners(t, filepath.Join(root, f.path)) {
			t.Errorf("%s: strings.%s reads an owner's text back: compare plan.Owner, or its Object", f.path, call)
		}
	}
}

// callsOnOwners are the functions of package strings that a file takes owners apart with.
func callsOnOwners(t *testing.T, path string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		f, is := call.Fun.(*ast.SelectorExpr)
		if !is || !isNamed(f.X, "strings") || !takesApart.MatchString(f.Sel.Name) {
			return true
		}
		if len(call.Args) > 0 && speaksOfOwner(call.Args[0]) {
			names = append(names, f.Sel.Name)
		}
		return true
	})
	return names
}

func isNamed(e ast.Expr, name string) bool {
	i, is := e.(*ast.Ident)
	return is && i.Name == name
}

// speaksOfOwner says whether an expression names an owner anywhere: "owner", "r.Owner.String()", "table.Owner(k)".
func speaksOfOwner(e ast.Expr) (does bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if i, is := n.(*ast.Ident); is && anOwner.MatchString(i.Name) {
			does = true
		}
		return !does
	})
	return does
}
