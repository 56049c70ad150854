package featuretest

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"

	cniv1 "github.com/egret-net/egret/api/cni/v1"
	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
)

//go:embed objects
var shared embed.FS

// object is any object of the API.
type object interface {
	metav1.Object
	runtime.Object
}

// id names an object: its kind, and "namespace/name" or "name".
type id struct{ kind, key string }

func idOf(o object) id {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if o.GetNamespace() == "" {
		return id{kind, o.GetName()}
	}
	return id{kind, o.GetNamespace() + "/" + o.GetName()}
}

// decodeObjects reads a YAML file of any number of objects. A field that a kind has not is an error.
func decodeObjects(text []byte) ([]object, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, v1.AddToScheme,
		egretv1.AddToScheme, cniv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var out []object
	for {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		decoded, _, err := decoder.Decode(doc, nil, nil)
		if err != nil {
			return nil, err
		}
		o, ok := decoded.(object)
		if !ok {
			return nil, fmt.Errorf("%T is no object with a name", decoded)
		}
		out = append(out, o)
	}
}
