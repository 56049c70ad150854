package deploy_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/egret-net/egret/deploy"
)

// decodeAll reads every document of the files strictly: an unknown or repeated field fails the test.
func decodeAll(t *testing.T, files fs.FS, pattern string) []runtime.Object {
	t.Helper()
	known := runtime.NewScheme()
	must(t, scheme.AddToScheme(known))
	must(t, apiextensionsv1.AddToScheme(known))
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()

	names, err := fs.Glob(files, pattern)
	must(t, err)
	var objects []runtime.Object
	for _, name := range names {
		for _, document := range documents(t, files, name) {
			object, _, err := decoder.Decode(document, nil, nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			objects = append(objects, object)
		}
	}
	return objects
}

// documents splits a file; documents of comments only are left out.
func documents(t *testing.T, files fs.FS, name string) [][]byte {
	t.Helper()
	content, err := fs.ReadFile(files, name)
	must(t, err)
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var all [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		if len(bytes.TrimSpace(document)) > 0 {
			all = append(all, document)
		}
	}
}

func TestManifestsDecode(t *testing.T) {
	for folder, files := range map[string]fs.FS{"deploy": deploy.Manifests, "deploy/cluster": os.DirFS("cluster")} {
		if len(decodeAll(t, files, "*.yaml")) == 0 {
			t.Errorf("no manifests in %s", folder)
		}
	}
}

// TestNamespaceComesFirst: kubectl apply -f FOLDER goes by file name, and refuses what lies in a namespace not yet there.
func TestNamespaceComesFirst(t *testing.T) {
	there := map[string]bool{}
	for _, object := range decodeAll(t, deploy.Manifests, "*.yaml") {
		if namespace, ok := object.(*corev1.Namespace); ok {
			there[namespace.Name] = true
			continue
		}
		accessor, err := meta.Accessor(object)
		must(t, err)
		if in := accessor.GetNamespace(); in != "" && !there[in] {
			t.Errorf("%T %s comes before its namespace %s", object, accessor.GetName(), in)
		}
	}
}

// TestAgentHasNoWideRights: what admission cannot narrow, the role must not give.
func TestAgentHasNoWideRights(t *testing.T) {
	writes := map[string][]string{}
	for _, rule := range role(t, "egret-node").Rules {
		for _, verb := range rule.Verbs {
			if verb != "get" && verb != "list" && verb != "watch" {
				for _, resource := range rule.Resources {
					writes[resource] = append(writes[resource], verb)
				}
			}
		}
	}
	want := map[string][]string{"nodes": {"patch"}, "pods": {"patch"}, "egressnodes": {"create", "update", "patch"}, "events": {"create", "patch"}}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("what egret-node may write (-want +have):\n%s", diff)
	}
}

func role(t *testing.T, name string) *rbacv1.ClusterRole {
	t.Helper()
	for _, object := range decodeAll(t, deploy.Manifests, "rbac-*.yaml") {
		if found, ok := object.(*rbacv1.ClusterRole); ok && found.Name == name {
			return found
		}
	}
	t.Fatalf("no ClusterRole %s", name)
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
