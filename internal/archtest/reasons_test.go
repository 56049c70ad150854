package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/test/docstest"
)

// TestReasonsAreConstants: no field Reason is a text of its own, which TestReasonsAreDocumented would not find.
func TestReasonsAreConstants(t *testing.T) {
	for _, f := range files(t) {
		if !under(f.folder, "api", "internal") || under(f.folder, "internal/sandbox") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, filepath.Join(root, f.path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if text := reasonLiteral(n); text != "" && isWord(text) {
				t.Errorf("%s:%d: reason %q is no constant Reason..., so that docs/reference.md may lack it", f.path,
					set.Position(n.Pos()).Line, text)
			}
			return true
		})
	}
}

// reasonLiteral returns the text that a node gives to a field Reason; "" of another node.
func reasonLiteral(n ast.Node) string {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if key, is := n.Key.(*ast.Ident); is && key.Name == "Reason" {
			_, text := literal(n.Value)
			return text
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if to, is := left.(*ast.SelectorExpr); is && to.Sel.Name == "Reason" && len(n.Rhs) == len(n.Lhs) {
				_, text := literal(n.Rhs[i])
				return text
			}
		}
	}
	return ""
}

// TestReasonsHaveRemedies: each row of docs/reference.md that names a reason says what it means and what to do.
func TestReasonsHaveRemedies(t *testing.T) {
	text, _ := docstest.ReadPage(t)
	for _, section := range []string{"Reasons of conditions", "Events", "Causes of a move", "Problems of a node"} {
		_, body, _ := strings.Cut(text, "\n## "+section+"\n")
		body, _, _ = strings.Cut(body, "\n## ")
		rows := regexp.MustCompile("(?m)^\\| `.*\\|$").FindAllString(body, -1)
		if len(rows) == 0 {
			t.Errorf("docs/reference.md, %q, has no rows", section)
		}
		for _, row := range rows {
			cells := strings.Split(strings.Trim(row, "|"), "|")
			if slices.ContainsFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) == "" }) {
				t.Errorf("docs/reference.md, %q, lacks a meaning or a remedy: %s", section, row)
			}
		}
	}
}
