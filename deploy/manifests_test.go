package deploy_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/egret-net/egret/deploy"
	"github.com/egret-net/egret/internal/sandbox/image"
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

// TestNamespaceComesFirst: kubectl apply -f FOLDER goes by file name, and refuses what lies in a namespace not yet
// there.
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

// TestNoUnusedRights: what a program does not use, its role does not give.
func TestNoUnusedRights(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"egret-node": {
			"nodes": "get list patch watch", "pods": "get list patch watch", "namespaces": "get list watch",
			"services":       "list watch",
			"endpointslices": "list watch", "egressips": "get list watch",
			"egressiptraffics": "list watch", "egressservices": "list watch",
			"egressnodes": "create get list patch watch", "events": "create",
			"network-attachment-definitions": "list watch",
		},
		"egret-controller": {
			"nodes": "list patch watch", "pods": "list watch", "namespaces": "list watch", "services": "list watch",
			"services/status":  "patch",
			"egressiptraffics": "list watch", "egressips": "list patch watch", "egressips/status": "patch",
			"egressservices": "list watch", "egressservices/status": "patch", "endpointslices": "list watch",
			"egressnodes":         "list watch",
			"events":              "create",
			"userdefinednetworks": "list patch watch", "userdefinednetworks/status": "patch",
			"clusteruserdefinednetworks": "list patch watch", "clusteruserdefinednetworks/status": "patch",
			"userdefinednetworks/finalizers": "update", "clusteruserdefinednetworks/finalizers": "update",
			"network-attachment-definitions": "create delete list patch watch",
		},
	} {
		have := map[string]string{}
		for resource, verbs := range verbsByResource(role(t, name)) {
			slices.Sort(verbs)
			have[resource] = strings.Join(slices.Compact(verbs), " ")
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("what %s may do (-want +have):\n%s", name, diff)
		}
	}
}

func verbsByResource(r *rbacv1.ClusterRole) map[string][]string {
	verbs := map[string][]string{}
	for _, rule := range r.Rules {
		for _, resource := range rule.Resources {
			verbs[resource] = append(verbs[resource], rule.Verbs...)
		}
	}
	return verbs
}

// containers are those of a pod, the ones that begin and end before the others too.
func containers(p corev1.PodSpec) []corev1.Container {
	return append(slices.Clone(p.InitContainers), p.Containers...)
}

// pods are the templates of deploy/cluster, by name.
func pods(t *testing.T) map[string]corev1.PodSpec {
	t.Helper()
	out := map[string]corev1.PodSpec{}
	for _, object := range decodeAll(t, os.DirFS("cluster"), "*.yaml") {
		switch o := object.(type) {
		case *appsv1.Deployment:
			out[o.Name] = o.Spec.Template.Spec
		case *appsv1.DaemonSet:
			out[o.Name] = o.Spec.Template.Spec
		}
	}
	return out
}

// TestOneImage: all containers run what make image makes, which is no moving target.
func TestOneImage(t *testing.T) {
	want := image.Egret().Name
	if strings.HasSuffix(want, ":latest") {
		t.Errorf("%s has no version", want)
	}
	for name, p := range pods(t) {
		for _, c := range containers(p) {
			if c.Image != want {
				t.Errorf("%s of %s runs %s, not %s", c.Name, name, c.Image, want)
			}
		}
	}
}

// TestOnlyTheAgentHasAToken: who breaks into a database of OVN's, or into OVS, finds no way to the API server.
func TestOnlyTheAgentHasAToken(t *testing.T) {
	for name, p := range pods(t) {
		if name == "egret-controller" {
			continue
		}
		if p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken {
			t.Errorf("%s: all containers get a token", name)
		}
		tokens := map[string]bool{}
		for _, v := range p.Volumes {
			tokens[v.Name] = v.Projected != nil && slices.ContainsFunc(v.Projected.Sources,
				func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil })
		}
		for _, c := range containers(p) {
			has := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return tokens[m.Name] })
			if has != (c.Name == "agent") {
				t.Errorf("%s of %s has a token: %t", c.Name, name, has)
			}
		}
	}
}

// TestHostsFilesAreRead: the agent alone sees the host's /etc and /usr, where its option looks for them, and can change
// nothing there, nor in what is mounted below.
func TestHostsFilesAreRead(t *testing.T) {
	for name, p := range pods(t) {
		files := map[string]string{}
		for _, v := range p.Volumes {
			if v.HostPath != nil && (v.HostPath.Path == "/etc" || v.HostPath.Path == "/usr") {
				files[v.Name] = v.HostPath.Path
			}
		}
		for _, c := range containers(p) {
			seen := 0
			for _, m := range c.VolumeMounts {
				if path := files[m.Name]; path != "" {
					seen++
					if below := m.RecursiveReadOnly; below == nil || *below != corev1.RecursiveReadOnlyIfPossible {
						t.Errorf("%s of %s can change what is mounted below %s", c.Name, name, path)
					}
					if !m.ReadOnly || !slices.Contains(c.Args, "--host-root="+strings.TrimSuffix(m.MountPath, path)) {
						t.Errorf("%s of %s has %s at %s, read only: %t", c.Name, name, path, m.MountPath, m.ReadOnly)
					}
				}
			}
			if want := map[bool]int{true: 2}[c.Name == "agent"]; seen != want {
				t.Errorf("%s of %s sees %d folders of the host, want %d", c.Name, name, seen, want)
			}
		}
	}
}

// TestTheAgentEndsFirst: what the agent needs to hand egress IPs over, where its node goes, ends after it. The kubelet
// runs preStop hooks of all containers at once, and only then has some wait for others.
func TestTheAgentEndsFirst(t *testing.T) {
	p := pods(t)["egret-node"]
	if len(p.Containers) != 1 || p.Containers[0].Name != "agent" {
		t.Fatalf("containers beside the agent end with it: %d", len(p.Containers))
	}
	stop := p.Containers[0].Lifecycle.PreStop.Exec.Command
	if want := []string{"egret-node", "release", "--if-leaving", "--timeout=20s"}; !slices.Equal(stop, want) {
		t.Errorf("the agent ends with %q, want %q", stop, want)
	}
	if grace := *p.TerminationGracePeriodSeconds; grace < 30 {
		t.Errorf("all has to end within %d s, and the agent alone may take 20", grace)
	}
	var after []string
	for _, c := range p.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			after = append(after, c.Name)
			if c.Lifecycle != nil {
				t.Errorf("%s has a hook, which the kubelet does not keep back until the agent has ended", c.Name)
			}
		}
	}
	if want := []string{"nb-db", "sb-db", "ovn-northd", "ovn-controller"}; !slices.Equal(after, want) {
		t.Errorf("after the agent end %q, want %q", after, want)
	}
}

// TestControllersAreUnprivileged: what pod security calls restricted, but for the host's network, on which alone
// management addresses can be reached.
func TestControllersAreUnprivileged(t *testing.T) {
	p := pods(t)["egret-controller"]
	no, yes := false, true
	want := &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	for _, c := range containers(p) {
		if diff := cmp.Diff(want, c.SecurityContext); diff != "" {
			t.Errorf("%s (-want +have):\n%s", c.Name, diff)
		}
	}
	s := p.SecurityContext
	if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil ||
		s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("controllers run as %+v", s)
	}
	if a := p.Affinity.NodeAffinity; a == nil || len(a.PreferredDuringSchedulingIgnoredDuringExecution) != 1 ||
		a.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		t.Error("controllers are to prefer control-plane nodes, and to need none")
	}
}

// TestOneControllerStays: nodes are drained one controller after the other, and one that does not work keeps none from
// being drained.
func TestOneControllerStays(t *testing.T) {
	var controllers *appsv1.Deployment
	var budget *policyv1.PodDisruptionBudget
	for _, object := range decodeAll(t, os.DirFS("cluster"), "egret-controller.yaml") {
		switch o := object.(type) {
		case *appsv1.Deployment:
			controllers = o
		case *policyv1.PodDisruptionBudget:
			budget = o
		}
	}
	if budget == nil || budget.Namespace != controllers.Namespace {
		t.Fatalf("no PodDisruptionBudget beside the controllers: %+v", budget)
	}
	selected, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	must(t, err)
	if !selected.Matches(labels.Set(controllers.Spec.Template.Labels)) {
		t.Errorf("%s selects no controllers", selected)
	}
	if most := budget.Spec.MaxUnavailable; most == nil || most.IntValue() != 1 || budget.Spec.MinAvailable != nil ||
		*controllers.Spec.Replicas != 2 {
		t.Errorf("of %d controllers %v may be gone", *controllers.Spec.Replicas, most)
	}
	if p := budget.Spec.UnhealthyPodEvictionPolicy; p == nil || *p != policyv1.AlwaysAllow {
		t.Error("controllers that do not work keep their nodes from being drained")
	}
}

// TestLifeIsAskedWithoutTLS: the kubelet asks where no certificate counts: one that is missing ends no agent. Nobody
// else is answered there, and no two programs of a node have one port.
func TestLifeIsAskedWithoutTLS(t *testing.T) {
	ports := map[string]string{}
	for _, name := range []string{"egret-controller", "egret-node"} {
		c := pods(t)[name].Containers[0]
		get := c.LivenessProbe.HTTPGet
		if at := "127.0.0.1:" + get.Port.String(); get.Host != "127.0.0.1" || get.Scheme != "" ||
			!slices.Contains(c.Args, "--healthz-bind-address="+at) {
			t.Errorf("%s is asked at %s, of %q", name, at, c.Args)
		}
		for _, a := range c.Args {
			if flag, address, _ := strings.Cut(a, "="); strings.HasSuffix(flag, "-bind-address") {
				_, port, err := net.SplitHostPort(address)
				must(t, err)
				if other := ports[port]; other != "" {
					t.Errorf("%s of %s has the port of %s", flag, name, other)
				}
				ports[port] = name
			}
		}
	}
}

// TestSecretsAreOptional: a cluster without these Secrets has no TLS, and works; with one, the files are where the
// comments of config.yaml say.
func TestSecretsAreOptional(t *testing.T) {
	config, err := os.ReadFile("cluster/config.yaml")
	must(t, err)
	for name, keys := range map[string][]string{
		"health":  {"HEALTHCHECK_TLS_KEY", "HEALTHCHECK_TLS_CERT", "HEALTHCHECK_TLS_CA"},
		"metrics": {"METRICS_TLS_KEY", "METRICS_TLS_CERT", "METRICS_TLS_CLIENT_CA"},
	} {
		for _, program := range []string{"egret-controller", "egret-node"} {
			p := pods(t)[program]
			c := p.Containers[0]
			i := slices.IndexFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == name })
			if s := p.Volumes[i].Secret; s.SecretName != "egret-"+name || s.Optional == nil || !*s.Optional {
				t.Errorf("%s needs Secret %s", program, s.SecretName)
			}
			want := corev1.VolumeMount{Name: name, MountPath: "/etc/egret/" + name, ReadOnly: true}
			if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return cmp.Equal(m, want) }) {
				t.Errorf("%s does not have %s at %s", program, name, want.MountPath)
			}
			for i, file := range []string{"tls.key", "tls.crt", "ca.crt"} {
				line := regexp.MustCompile("  # " + keys[i] + `: "" +# ` + want.MountPath + "/" + file + "\n")
				if !line.Match(config) {
					t.Errorf("config.yaml does not say %s", line)
				}
			}
		}
	}
}

// TestUsersRoles: the cluster's own roles take in what people may do with the objects that are theirs: all may read,
// who edits may write, and nobody gets what is the controller's or the agents'.
func TestUsersRoles(t *testing.T) {
	const read, write = "get list watch", "create delete deletecollection patch update"
	editor := map[string]string{"egressips": read + " " + write, "egressservices": read,
		"egressiptraffics": read + " " + write, "egressnodes": read, "userdefinednetworks": read + " " + write,
		"clusteruserdefinednetworks": read, "network-attachment-definitions": read}
	want := map[string]map[string]string{
		"view": {"egressips": read, "egressservices": read, "egressiptraffics": read, "egressnodes": read,
			"userdefinednetworks": read, "clusteruserdefinednetworks": read, "network-attachment-definitions": read},
		"edit":  editor,
		"admin": editor,
	}
	for into, verbs := range want {
		for resource, v := range verbs {
			words := strings.Fields(v)
			slices.Sort(words)
			want[into][resource] = strings.Join(words, " ")
		}
		all := map[string][]string{}
		for _, object := range decodeAll(t, deploy.Manifests, "rbac-users.yaml") {
			r := object.(*rbacv1.ClusterRole)
			if r.Labels["rbac.authorization.k8s.io/aggregate-to-"+into] == "true" {
				for resource, verbs := range verbsByResource(r) {
					all[resource] = append(all[resource], verbs...)
				}
			}
		}
		have := map[string]string{}
		for resource, verbs := range all {
			slices.Sort(verbs)
			have[resource] = strings.Join(slices.Compact(verbs), " ")
		}
		if diff := cmp.Diff(want[into], have); diff != "" {
			t.Errorf("what %s takes in (-want +have):\n%s", into, diff)
		}
	}
}

// TestExplained: kubectl explain says something of every field.
func TestExplained(t *testing.T) {
	for _, object := range decodeAll(t, deploy.Manifests, "crd-*.yaml") {
		crd := object.(*apiextensionsv1.CustomResourceDefinition)
		for _, v := range crd.Spec.Versions {
			for _, field := range unexplained(crd.Spec.Names.Kind, *v.Schema.OpenAPIV3Schema) {
				t.Errorf("%s has no description", field)
			}
		}
	}
}

// unexplained are the fields below one without a description; those of metadata are Kubernetes' own.
func unexplained(name string, s apiextensionsv1.JSONSchemaProps) (out []string) {
	if s.Description == "" && !strings.HasSuffix(name, "[]") {
		out = append(out, name)
	}
	for field, p := range s.Properties {
		if field != "metadata" {
			out = append(out, unexplained(name+"."+field, p)...)
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		out = append(out, unexplained(name+"[]", *s.Items.Schema)...)
	}
	return out
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
