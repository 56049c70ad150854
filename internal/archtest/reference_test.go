package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/egret-net/egret/test/docstest"
)

// TestObjectsAreDocumented compares docs/reference.md with the fields of the CRDs, whose descriptions are the comments
// of api/.
func TestObjectsAreDocumented(t *testing.T) {
	for _, plural := range []string{"egressips", "egressiptraffics", "egressservices", "egressnodes"} {
		text, err := os.ReadFile(filepath.Join(root, "deploy/crd-"+plural+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			t.Fatal(err)
		}
		table := docstest.Row("field", "type", "meaning") + "|---|---|---|\n"
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, part := range []string{"spec", "status"} {
			if properties, has := schema.Properties[part]; has {
				table += fieldRows(part, properties)
			}
		}
		docstest.ComparePart(t, crd.Spec.Names.Kind, table)
	}
}

// fieldRows returns a row for each field below a path. Kubernetes' own types, which are selectors and conditions, are
// one row.
func fieldRows(path string, schema apiextensionsv1.JSONSchemaProps) (rows string) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field := schema.Properties[name]
		below, kind := path+"."+name, field.Type
		item := field
		if field.Items != nil {
			item, below = *field.Items.Schema, below+"[]"
			kind = "list of " + item.Type + "s"
		}
		if values := item.Enum; len(values) > 0 {
			var names []string
			for _, v := range values {
				names = append(names, strings.Trim(string(v.Raw), `"`))
			}
			kind += ": " + strings.Join(names, ", ")
		}
		if field.Default != nil && string(field.Default.Raw) != "{}" {
			kind += "; default " + strings.Trim(string(field.Default.Raw), `"`)
		}
		if slices.Contains(schema.Required, name) {
			kind += "; required"
		}
		if _, isSelector := item.Properties["matchLabels"]; isSelector {
			kind, item.Properties = strings.Replace(kind, "object", "label selector", 1), nil
		}
		if _, isCondition := item.Properties["lastTransitionTime"]; isCondition {
			kind, item.Properties = "list of conditions", nil
		}
		rows += docstest.Row("`"+below+"`", kind, field.Description) + fieldRows(below, item)
	}
	return rows
}

// TestExampleIsDocumented compares the code of docs/reference.md with the example of api, which runs as a test there.
func TestExampleIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "api/applyconfiguration/example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile(`(?ms)^func applyEgressIP\(.*?^}\n`).Find(text)
	if example == nil {
		t.Fatal("api/applyconfiguration/example_test.go has no function applyEgressIP")
	}
	docstest.ComparePart(t, "Go", "```go\n"+strings.ReplaceAll(string(example), "\t", "    ")+"```\n")
}

// TestAnnotationsAreDocumented compares docs/reference.md with the annotations and labels of api/v1.
func TestAnnotationsAreDocumented(t *testing.T) {
	table := docstest.Row("name", "meaning") + "|---|---|\n"
	prefixes := map[string]string{"Prefix": "k8s.ovn.org/", "EgretPrefix": "egret.k8s.ovn.org/"}
	all := constants(t, "api/v1/annotations.go")
	for _, c := range all {
		if strings.HasPrefix(c.name, "Annotation") || strings.HasPrefix(c.name, "Label") {
			table += docstest.Row("`"+prefixes[c.prefix]+c.value+"`", describe(c, all))
		}
	}
	docstest.ComparePart(t, "annotations and labels", table)
}

// describe returns a constant's comment without the constant's name, and with the values of the others.
func describe(c constant, all []constant) string {
	text := strings.TrimPrefix(c.comment, c.name)
	text = strings.TrimLeft(strings.TrimPrefix(text, " is "), ", ")
	for _, o := range all {
		text = regexp.MustCompile(`\b`+o.name+`\b`).ReplaceAllString(text, "`"+o.value+"`")
	}
	return text
}

// constant is a constant string: prefix is the name of the constant before a "+", which value leaves out.
type constant struct{ folder, name, prefix, value, comment string }

// constants returns the constant strings of a file. A comment of a group with one comment is each one's.
func constants(t *testing.T, path string) (out []constant) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		group, is := d.(*ast.GenDecl)
		if !is || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			spec := s.(*ast.ValueSpec)
			if len(spec.Values) != 1 {
				continue
			}
			c := constant{folder: filepath.Dir(path), name: spec.Names[0].Name, comment: spec.Doc.Text()}
			if c.comment == "" {
				c.comment = group.Doc.Text()
			}
			c.prefix, c.value = literal(spec.Values[0])
			if c.value != "" {
				out = append(out, c)
			}
		}
	}
	return out
}

// literal returns the value of "text" and of name + "text"; "" of another expression.
func literal(x ast.Expr) (prefix, value string) {
	switch x := x.(type) {
	case *ast.BasicLit:
		value, _ = strconv.Unquote(x.Value)
	case *ast.BinaryExpr:
		if name, is := x.X.(*ast.Ident); is {
			_, value = literal(x.Y)
			return name.Name, value
		}
	}
	return "", value
}

// notNamed are reasons that no constant has: a kind and "NotReady" (Agent.pauseEgress).
var notNamed = []string{"EgressIPNotReady", "EgressServiceNotReady"}

// sections are those of docs/reference.md with the names that users meet: each section has a row for every constant
// that belongs to it.
var sections = map[string]func(c constant) bool{
	"Conditions": func(c constant) bool { return strings.HasPrefix(c.name, "Condition") },
	"Reasons of conditions": func(c constant) bool {
		return strings.HasPrefix(c.name, "Reason") && c.folder != "internal/world"
	},
	"Events": func(c constant) bool {
		return strings.HasPrefix(c.name, "Event") || strings.HasPrefix(c.name, "reason")
	},
	"Causes of a move": func(c constant) bool {
		return strings.HasPrefix(c.name, "Cause") || c.name == "NodeUnreachable" || c.name == "AgentAway"
	},
	"Problems of a node": func(c constant) bool {
		return strings.HasPrefix(c.name, "Reason") && c.folder == "internal/world"
	},
}

// TestReasonsAreDocumented: docs/reference.md has each condition, reason, Event and problem of the source, with a
// remedy, and no other.
func TestReasonsAreDocumented(t *testing.T) {
	all, known := []constant{}, map[string]bool{}
	for _, f := range files(t) {
		if under(f.folder, "api", "internal") && !under(f.folder, "internal/sandbox") {
			all = append(all, constants(t, f.path)...)
		}
	}
	for _, c := range all {
		if isWord(c.value) || strings.HasPrefix(c.name, "Condition") {
			known[c.value] = true
		}
	}
	for _, name := range notNamed {
		known[name] = true
	}
	text, _ := docstest.ReadPage(t)
	for section, belongs := range sections {
		documented := rowNames(t, text, section)
		for _, c := range all {
			if known[c.value] && belongs(c) && !slices.Contains(documented, c.value) {
				t.Errorf("docs/reference.md, %q, lacks %s (%s in %s)", section, c.value, c.name, c.folder)
			}
		}
		for _, name := range documented {
			if !known[name] {
				t.Errorf("docs/reference.md, %q, has %s, which is in no source", section, name)
			}
		}
	}
}

func isWord(s string) bool { return regexp.MustCompile(`^[A-Z][A-Za-z]+$`).MatchString(s) }

// rowNames returns what stands in backquotes in the first column of a section's table.
func rowNames(t *testing.T, text, section string) (names []string) {
	t.Helper()
	_, body, has := strings.Cut(text, "\n## "+section+"\n")
	if !has {
		t.Fatalf("docs/reference.md lacks the section %q", section)
	}
	body, _, _ = strings.Cut(body, "\n## ")
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]*) \|`).FindAllStringSubmatch(body, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			names = append(names, name[1])
		}
	}
	return names
}
