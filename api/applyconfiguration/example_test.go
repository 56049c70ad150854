package applyconfiguration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	apply "github.com/egret-net/egret/api/applyconfiguration/api/v1"
	v1 "github.com/egret-net/egret/api/v1"
)

// applyEgressIP creates an EgressIP or changes it, and owns the fields that it names. docs/reference.md shows it.
func applyEgressIP(ctx context.Context, client dynamic.Interface) error {
	shop := apply.EgressIP("shop").WithSpec(apply.EgressIPSpec().
		WithEgressIPs("172.18.0.33").
		WithNamespaceSelector(applymeta.LabelSelector().
			WithMatchLabels(map[string]string{"team": "shop"})))
	body, err := json.Marshal(shop)
	if err != nil {
		return err
	}
	_, err = client.Resource(v1.GroupVersion.WithResource("egressips")).Patch(ctx, *shop.GetName(),
		types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "my-program"})
	return err
}

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Println(r.Method, r.URL, r.Header.Get("Content-Type"))
		fmt.Println(strings.ReplaceAll(string(body), `,"`, "\n,\""))
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = w.Write(body)
	}))
	defer server.Close()
	fmt.Println(applyEgressIP(context.Background(), dynamic.NewForConfigOrDie(&rest.Config{Host: server.URL})))
	// Output:
	// PATCH /apis/k8s.ovn.org/v1/egressips/shop?fieldManager=my-program application/apply-patch+yaml
	// {"kind":"EgressIP"
	// ,"apiVersion":"k8s.ovn.org/v1"
	// ,"metadata":{"name":"shop"}
	// ,"spec":{"egressIPs":["172.18.0.33"]
	// ,"namespaceSelector":{"matchLabels":{"team":"shop"}}}}
	// <nil>
}
