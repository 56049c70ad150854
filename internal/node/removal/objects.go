package removal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
)

// apiTimeout is how long the API server may take to be reached by the node's own network.
const apiTimeout = 30 * time.Second

// nodeAnnotations are those that agents and controllers write on a Node.
var nodeAnnotations = []string{
	v1.AnnotationNodeSubnets, v1.AnnotationNodeID, v1.AnnotationNodeTransitSwitchPortIfaddr,
	v1.AnnotationNodeGatewayRouterLRPIfaddrs, v1.AnnotationAllocationProblem, v1.AnnotationRecordedAddresses,
	v1.AnnotationNodePrimaryIfaddr, v1.AnnotationHostCIDRs, v1.AnnotationL3GatewayConfig, v1.AnnotationNodeChassisID,
	v1.AnnotationNodeMgmtPortMACAddresses, v1.AnnotationZoneName,
}

// removeObjectsOf tries until the API server has done it.
func removeObjectsOf(ctx context.Context, o Options) error {
	config, err := kube.Config(o.Kubeconfig, o.APIServer, 50, "egret-node/"+o.Version)
	if err != nil {
		return err
	}
	clients, err := kube.NewClients(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	for {
		err := removeObjects(ctx, clients, o.Node)
		if err == nil || apierrors.IsForbidden(err) {
			return err
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// removeObjects removes the annotations and labels that Egret wrote on a Node, and the node's EgressNode and Lease.
// Then it ends Ready of objects that have an address there.
func removeObjects(ctx context.Context, c *kube.Clients, name string) error {
	n := &corev1.Node{}
	err := c.Core.Get().Resource("nodes").Name(name).Do(ctx).Into(n)
	if err == nil {
		err = cleanNode(ctx, c, n)
	}
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return errors.Join(err,
		deleteObject(ctx, c.Egret, "", "egressnodes", name),
		deleteObject(ctx, c.Coordination, kube.AgentLeaseNamespace, "leases", name),
		sayUnserved(ctx, c, "egressips", name),
		sayUnserved(ctx, c, "egressservices", name))
}

// cleanNode removes annotations and labels of Egret's from a Node, and keeps those of people.
func cleanNode(ctx context.Context, c *kube.Clients, n *corev1.Node) error {
	annotations, labels := map[string]any{}, map[string]any{}
	for _, key := range nodeAnnotations {
		if _, is := n.Annotations[key]; is {
			annotations[key] = nil // RFC 7386: it is removed
		}
	}
	if strings.HasPrefix(n.Annotations[v1.AnnotationEgressCordon], v1.EgressCordonShutdown) {
		annotations[v1.AnnotationEgressCordon] = nil
	}
	for key := range n.Labels {
		if strings.HasPrefix(key, v1.LabelEgressService) {
			labels[key] = nil
		}
	}
	if len(annotations)+len(labels) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations,
		"labels": labels}})
	if err != nil {
		return err
	}
	err = c.Core.Patch(types.MergePatchType).Resource("nodes").Name(n.Name).Body(patch).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("remove annotations and labels of Node %s: %w", n.Name, err)
	}
	return nil
}

// deleteObject deletes one object; one that does not exist, as its kind may not, is no error.
func deleteObject(ctx context.Context, c rest.Interface, namespace, plural, name string) error {
	err := c.Delete().NamespaceIfScoped(namespace, namespace != "").Resource(plural).Name(name).Do(ctx).Error()
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s: %w", plural, name, err)
	}
	return nil
}
