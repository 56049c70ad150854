package sandbox

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/egret-net/egret/internal/sandbox/image"
)

// metalLBManifest is the file in the binaries' folder that make build takes from MetalLB's module.
const metalLBManifest = "metallb.yaml"

// MetalLBNamespace is where MetalLB runs, and where its objects are.
const MetalLBNamespace = "metallb-system"

// applyMetalLB installs MetalLB as its users do, but for what metalLBManifests changes.
func (c *Cluster) applyMetalLB(ctx context.Context) error {
	o := c.layout.options
	if !o.MetalLB {
		return nil
	}
	content, err := os.ReadFile(o.binaryPath(metalLBManifest))
	if err != nil {
		return err
	}
	manifests, err := metalLBManifests(string(content))
	if err != nil {
		return fmt.Errorf("%s: %w", metalLBManifest, err)
	}
	return applyManifests(ctx, c.layout, manifests)
}

// waitForMetalLB returns when the controller and a speaker on each node answer their probes.
func (c *Cluster) waitForMetalLB(ctx context.Context, client kubernetes.Interface, p *progress) error {
	if !c.layout.options.MetalLB {
		return nil
	}
	err := c.awaitCheck(ctx, "MetalLB", func(ctx context.Context) error {
		d, err := client.AppsV1().Deployments(MetalLBNamespace).Get(ctx, "controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		s, err := client.AppsV1().DaemonSets(MetalLBNamespace).Get(ctx, "speaker", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if want := int32(c.layout.options.Nodes); d.Status.AvailableReplicas < 1 || s.Status.NumberAvailable < want {
			return fmt.Errorf("available in %s: %d controllers of 1, %d speakers of %d", MetalLBNamespace,
				d.Status.AvailableReplicas, s.Status.NumberAvailable, want)
		}
		return nil
	})
	if err == nil {
		p.printLine("MetalLB ready")
	}
	return err
}

// metalLBManifests is MetalLB's own manifest, run from the sandbox's images, without webhooks: the API server is
// outside of the pods' network and reaches no Service, and a webhook that it cannot reach refuses every object.
func metalLBManifests(manifest string) (string, error) {
	var all strings.Builder
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		o := unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			return "", err
		}
		if ofWebhooks(o) {
			continue
		}
		if err := adaptMetalLB(o); err != nil {
			return "", fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&all, "---\n%s", text)
	}
	return all.String(), nil
}

func ofWebhooks(o unstructured.Unstructured) bool {
	return o.GetKind() == "ValidatingWebhookConfiguration" || o.GetName() == "metallb-webhook-service"
}

// adaptMetalLB changes one object in place.
func adaptMetalLB(o unstructured.Unstructured) error {
	switch o.GetKind() {
	case "CustomResourceDefinition":
		unstructured.RemoveNestedField(o.Object, "spec", "conversion")
		widenIntegers(o.Object)
	case "Deployment":
		return changeObject(o, func(d *appsv1.Deployment) { adaptPod(&d.Spec.Template.Spec) })
	case "DaemonSet":
		return changeObject(o, func(d *appsv1.DaemonSet) { adaptPod(&d.Spec.Template.Spec) })
	}
	return nil
}

// widenIntegers changes those fields of a schema that are said to have 32 bits and have a maximum that does not fit:
// from version 1.36 on Kubernetes refuses every object that has one (MetalLB's issue 3034, mended in its v0.16).
func widenIntegers(schema any) {
	switch node := schema.(type) {
	case map[string]any:
		if limit, is := node["maximum"].(float64); is && limit > math.MaxInt32 && node["format"] == "int32" {
			node["format"] = "int64"
		}
		for _, below := range node {
			widenIntegers(below)
		}
	case []any:
		for _, below := range node {
			widenIntegers(below)
		}
	}
}

// changeObject gives an object to change in its own type.
func changeObject[T any](o unstructured.Unstructured, change func(*T)) error {
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &typed); err != nil {
		return err
	}
	change(&typed)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	if err != nil {
		return err
	}
	o.Object["spec"] = content["spec"]
	return nil
}

// adaptPod has the images of the sandbox run, and be ready as soon as they are.
func adaptPod(pod *corev1.PodSpec) {
	for i := range pod.Containers {
		c := &pod.Containers[i]
		c.ImagePullPolicy = corev1.PullNever
		switch c.Name {
		case "controller":
			c.Image = image.MetalLBController().Name
			c.Args = append(c.Args, "--webhook-mode=disabled")
		case "speaker":
			c.Image = image.MetalLBSpeaker().Name
		}
		if c.ReadinessProbe != nil {
			c.ReadinessProbe.InitialDelaySeconds, c.ReadinessProbe.PeriodSeconds = 0, 1
		}
	}
}
