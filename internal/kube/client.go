package kube

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	cniv1 "github.com/egret-net/egret/api/cni/v1"
	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
)

// Clients are REST clients of the API groups that Egret uses, one a group. They share a rate limit.
type Clients struct {
	Core, Discovery, Events, Coordination rest.Interface // speak protobuf
	EgressIP, Egret, Definitions          rest.Interface // speak JSON, as custom resources do
}

// Config reads a kubeconfig file, or, if path is empty, what a pod finds in itself. A server, host:port, replaces the
// one that these name. Up to qps requests a second are sent, up to twice as many at once.
func Config(path, server string, qps float32, userAgent string) (*rest.Config, error) {
	read := func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", path) }
	if path == "" {
		read = rest.InClusterConfig
	}
	c, err := read()
	if err != nil {
		return nil, fmt.Errorf("no way to the API server: %w; give --kubeconfig, or run in a pod", err)
	}
	if server != "" {
		c.Host = "https://" + server
	}
	c.QPS, c.Burst, c.UserAgent = qps, int(2*qps), userAgent
	return c, nil
}

// ListRequest asks for all objects of a kind in a namespace, "" for all: those that the watch of the kind brings, by
// their labels.
func (c *Clients) ListRequest(kind Kind, namespace string) *rest.Request {
	request := kind.restClient(c).Get().Namespace(namespace).Resource(kind.pluralName())
	if selector := kind.labelSelector(); selector != "" {
		request.Param("labelSelector", selector)
	}
	return request
}

// NewClients makes clients of one configuration.
func NewClients(c *rest.Config) (*Clients, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{metav1.AddMetaToScheme, corev1.AddToScheme,
		discoveryv1.AddToScheme, eventsv1.AddToScheme, coordinationv1.AddToScheme, v1.AddToScheme,
		egretv1.AddToScheme, cniv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("types of the API: %w", err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	base := rest.CopyConfig(c)
	base.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	http, err := rest.HTTPClientFor(base)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", c.Host, err)
	}
	out := &Clients{}
	for _, g := range []struct {
		client  *rest.Interface
		version schema.GroupVersion
		content string
	}{
		{&out.Core, corev1.SchemeGroupVersion, runtime.ContentTypeProtobuf},
		{&out.Discovery, discoveryv1.SchemeGroupVersion, runtime.ContentTypeProtobuf},
		{&out.Events, eventsv1.SchemeGroupVersion, runtime.ContentTypeProtobuf},
		{&out.Coordination, coordinationv1.SchemeGroupVersion, runtime.ContentTypeProtobuf},
		{&out.EgressIP, v1.GroupVersion, runtime.ContentTypeJSON},
		{&out.Egret, egretv1.GroupVersion, runtime.ContentTypeJSON},
		{&out.Definitions, cniv1.GroupVersion, runtime.ContentTypeJSON},
	} {
		of := rest.CopyConfig(base)
		of.GroupVersion, of.APIPath, of.ContentType = &g.version, "/apis", g.content
		of.AcceptContentTypes = g.content + "," + runtime.ContentTypeJSON
		if g.version.Group == "" {
			of.APIPath = "/api"
		}
		if *g.client, err = rest.RESTClientForConfigAndClient(of, http); err != nil {
			return nil, fmt.Errorf("client of %s: %w", g.version, err)
		}
	}
	return out, nil
}
