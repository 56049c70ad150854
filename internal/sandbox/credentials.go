package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// namespace of Egret's service accounts, as in deploy/.
const egretNamespace = "egret-system"

// tokenLifetime outlives any sandbox.
const tokenLifetime = 10 * 365 * 24 * 3600 // seconds

// identity is one of Egret's programs to the API server.
type identity struct{ program, serviceAccount string }

func identitiesOf(number int) []identity {
	ids := []identity{{"node", "egret-node"}}
	if number <= ControllerNodes {
		ids = append(ids, identity{"controller", "egret-controller"})
	}
	return ids
}

// issueKubelet gives a node its kubelet's certificate, if it has none yet; the kubelet starts when it is there. It
// needs no API server.
func issueKubelet(ctx context.Context, n node) error {
	l, file := n.layout, filepath.Join(n.etcDir(), "kubelet.kubeconfig")
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	ca, err := os.ReadFile(filepath.Join(l.controlPlaneDir(), "pki", "ca.crt"))
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(n.etcDir(), "ca.crt"), ca, 0o644); err != nil {
		return err
	}
	prefix := filepath.Join(n.stateDir(), "kubelet")
	cmd := exec.CommandContext(ctx, l.options.binaryPath("egret-controlplane"), "issue",
		"--dir", l.controlPlaneDir(), "--cn", "system:node:"+n.name, "--org", "system:nodes",
		"--server", l.apiURL(), "--out", prefix)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubelet certificate of %s: %w\n%s", n.name, err, out)
	}
	content, err := os.ReadFile(prefix + ".kubeconfig")
	if err != nil {
		return err
	}
	return replaceFile(file, content, 0o600)
}

// issueAgents gives Egret's programs on a node tokens that are bound to the Node object, as a pod's would be: the API
// server then knows which node speaks, and a token dies with the object. Present tokens of the same object are kept.
func issueAgents(ctx context.Context, client kubernetes.Interface, n node, object *corev1.Node) error {
	ca, err := os.ReadFile(filepath.Join(n.etcDir(), "ca.crt"))
	if err != nil {
		return err
	}
	mark := filepath.Join(n.etcDir(), "node.uid")
	if have, err := os.ReadFile(mark); err == nil && string(have) == string(object.UID) {
		return nil
	}
	for _, id := range identitiesOf(n.number) {
		token, err := requestToken(ctx, client, id.serviceAccount, object)
		if err != nil {
			return err
		}
		if err := replaceFile(filepath.Join(n.etcDir(), id.program+".token"), []byte(token), 0o600); err != nil {
			return err
		}
		content, err := agentKubeconfig(n.layout.apiURL(), ca, id)
		if err != nil {
			return err
		}
		if err := replaceFile(filepath.Join(n.etcDir(), id.program+".kubeconfig"), content, 0o600); err != nil {
			return err
		}
	}
	return replaceFile(mark, []byte(object.UID), 0o644)
}

// dropAgents removes the tokens of Egret's programs on a node, and what they wait for, unless they are bound to this
// object.
func dropAgents(n node, object *corev1.Node) {
	mark := filepath.Join(n.etcDir(), "node.uid")
	if have, err := os.ReadFile(mark); err != nil || string(have) == string(object.UID) {
		return
	}
	_ = os.Remove(mark)
	for _, id := range identitiesOf(n.number) {
		_ = os.Remove(filepath.Join(n.etcDir(), id.program+".kubeconfig"))
		_ = os.Remove(filepath.Join(n.etcDir(), id.program+".token"))
	}
}

func requestToken(ctx context.Context, client kubernetes.Interface, serviceAccount string, object *corev1.Node) (string,
	error) {
	lifetime := int64(tokenLifetime)
	request := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{
		ExpirationSeconds: &lifetime,
		BoundObjectRef: &authv1.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: object.Name,
			UID: object.UID},
	}}
	reply, err := client.CoreV1().ServiceAccounts(egretNamespace).CreateToken(ctx, serviceAccount, request,
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of %s on %s: %w", serviceAccount, object.Name, err)
	}
	return reply.Status.Token, nil
}

// agentKubeconfig names the token's file, so that a new token is taken up without a restart.
func agentKubeconfig(server string, ca []byte, id identity) ([]byte, error) {
	k := api.NewConfig()
	k.Clusters["egret"] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	k.AuthInfos[id.serviceAccount] = &api.AuthInfo{TokenFile: nodeEtc + "/" + id.program + ".token"}
	k.Contexts["egret"] = &api.Context{Cluster: "egret", AuthInfo: id.serviceAccount}
	k.CurrentContext = "egret"
	return clientcmd.Write(*k)
}
