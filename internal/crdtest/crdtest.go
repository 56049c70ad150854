// Package crdtest judges objects as an API server with one of our CRDs would, without a server.
//
// In: the plural of a CRD in deploy, then objects. Out: the API server's refusals, and the row that kubectl get prints.
package crdtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/egret-net/egret/deploy"
)

// CRD is a definition that the API server's own validation accepts, the cost of its CEL rules included.
type CRD struct {
	names     []string
	version   apiextensionsv1.CustomResourceDefinitionVersion
	structure *schema.Structural
	schema    validation.SchemaValidator
	rules     *cel.Validator
}

// Load reads the CRD of these objects, which has one version, and fails the test if an API server would refuse it.
func Load(t *testing.T, plural string) *CRD {
	t.Helper()
	manifest, err := deploy.Manifests.ReadFile("crd-" + plural + ".yaml")
	must(t, err)
	definition := &apiextensionsv1.CustomResourceDefinition{}
	must(t, yaml.UnmarshalStrict(manifest, definition))
	apiextensionsv1.SetDefaults_CustomResourceDefinition(definition)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&definition.Spec)
	version := definition.Spec.Versions[0]
	definition.Status.StoredVersions = []string{version.Name}

	internal := &apiextensions.CustomResourceDefinition{}
	must(t, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(definition,
		internal, nil))
	must(t, crdvalidation.ValidateCustomResourceDefinition(context.Background(), internal).ToAggregate())

	object := &apiextensions.JSONSchemaProps{}
	must(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema,
		object, nil))
	structure, err := schema.NewStructural(object)
	must(t, err)
	checker, _, err := validation.NewSchemaValidator(object)
	must(t, err)
	names := append([]string{definition.Spec.Names.Plural}, definition.Spec.Names.ShortNames...)
	return &CRD{names, version, structure, checker, cel.NewValidator(structure, true, celconfig.PerCallLimit)}
}

// Refusals are the messages with which the API server refuses to create the object, in order; none means accepted.
func (c *CRD) Refusals(object map[string]any) []string {
	return c.judgeRules(object, nil, validation.ValidateCustomResource(nil, object, c.schema))
}

// RefusedChanges are the messages with which it refuses to make another object of one.
func (c *CRD) RefusedChanges(old, object map[string]any) []string {
	return c.judgeRules(object, old, validation.ValidateCustomResourceUpdate(nil, object, old, c.schema))
}

// judgeRules returns the messages about an object, given what is wrong with its shape. As the API server does: rules
// are judged only where the shape is right, and rules about changes only where there is an old object.
func (c *CRD) judgeRules(object, old map[string]any, errs field.ErrorList) []string {
	if len(errs) == 0 {
		var was any // not a nil map: that would be an old object
		if old != nil {
			was = old
		}
		errs, _ = c.rules.Validate(context.Background(), nil, c.structure, object, was, celconfig.RuntimeCELCostBudget)
	}
	messages := make([]string, 0, len(errs))
	for _, err := range errs {
		messages = append(messages, err.Error())
	}
	slices.Sort(messages)
	return messages
}

// Unknown are the paths of fields that the API server would drop silently because the schema does not have them.
func (c *CRD) Unknown(object map[string]any) []string {
	return pruning.PruneWithOptions(object, c.structure, true,
		schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// Row is what kubectl get -o wide prints for the object, name first, cells joined by " | ".
func (c *CRD) Row(t *testing.T, object map[string]any) string {
	t.Helper()
	convertor, err := tableconvertor.New(c.version.AdditionalPrinterColumns)
	must(t, err)
	table, err := convertor.ConvertToTable(context.Background(), &unstructured.Unstructured{Object: object}, nil)
	must(t, err)
	var cells []string
	for _, cell := range table.Rows[0].Cells {
		cells = append(cells, fmt.Sprint(cell))
	}
	return strings.Join(cells, " | ")
}

// Heading is what users call the objects, and the headers of kubectl get -o wide without that of the name, joined by
// " | ".
func (c *CRD) Heading() string {
	out := []string{strings.Join(c.names, " ")}
	for _, column := range c.version.AdditionalPrinterColumns {
		out = append(out, column.Name)
	}
	return strings.Join(out, " | ")
}

// Object reads one object from YAML, numbers as the API server reads them: int64 where they are whole.
func Object(t *testing.T, text string) map[string]any {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	must(t, err)
	object := map[string]any{}
	must(t, json.Unmarshal(encoded, &object))
	return object
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
