package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"github.com/egret-net/egret/deploy"
)

// applyManifests applies manifests as `kubectl apply --server-side` does. Those of one call must not build on each other's
// kinds.
func applyManifests(ctx context.Context, l layout, manifests string) error {
	cmd := exec.CommandContext(ctx, l.options.binaryPath("egret-controlplane"), "kubectl", "apply", "--server-side",
		"--force-conflicts",
		"--field-manager=egret-sandbox", "-f", "-")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.adminKubeconfig())
	cmd.Stdin = strings.NewReader(manifests)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apply manifests: %w\n%s", err, out)
	}
	return nil
}

// agentSettings is the ConfigMap of deploy/cluster, with the settings that differ from the flags' defaults here:
// `kubectl egret explain` reads it.
func agentSettings(l layout, datapath string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: egret, namespace: %s}
data:
  CLUSTER_SUBNETS: %q
  SERVICE_SUBNETS: %q
  GATEWAY_MODE: %q
  GATEWAY_INTERFACE: %q
  DATAPATH: %q
`, egretNamespace, joinTexts(l.pods), joinTexts(l.service), l.options.GatewayMode, uplink, datapath)
}

// egretManifests joins the files of deploy/ in the order of their names.
func egretManifests() (string, error) {
	files, err := fs.Glob(deploy.Manifests, "*.yaml")
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", errors.New("no manifests are embedded in package deploy")
	}
	var all bytes.Buffer
	for _, f := range files {
		content, err := deploy.Manifests.ReadFile(f)
		if err != nil {
			return "", err
		}
		all.WriteString("---\n")
		all.Write(content)
		all.WriteString("\n")
	}
	return all.String(), nil
}
