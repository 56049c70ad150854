// Command egret-controlplane is the Kubernetes of a sandbox in one file.
//
//	egret-controlplane all ...      etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one process
//	egret-controlplane issue ...    a client certificate (and kubeconfig) signed by the cluster's CA
//	egret-controlplane kubelet ...  the kubelet
//	egret-controlplane kubectl ...  kubectl
//
// A symbolic link named kubelet or kubectl works as that command. It is for development and tests: etcd does not sync
// to disk, and the CA's key lies in the state folder.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl reads kubeconfigs of any kind
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

const usage = "usage: egret-controlplane all|issue|kubelet|kubectl [flags]"

func main() {
	applet, args := filepath.Base(os.Args[0]), os.Args[1:]
	if applet != "kubelet" && applet != "kubectl" {
		if len(args) == 0 {
			fail(2, usage)
		}
		applet, args = args[0], args[1:]
	}
	os.Args = append([]string{applet}, args...) // the embedded commands read it
	switch applet {
	case "all":
		exitOn(runAll(args))
	case "issue":
		exitOn(runIssue(args))
	case "kubelet":
		os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background())))
	case "kubectl":
		runKubectl()
	default:
		fail(2, fmt.Sprintf("unknown command %q\n%s", applet, usage))
	}
}

func runKubectl() {
	if _, err := logs.GlogSetter(kubectlcmd.GetLogVerbosity(os.Args)); err != nil {
		fail(1, err.Error())
	}
	if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints the error as kubectl does and exits
	}
}

func exitOn(err error) {
	if err != nil {
		fail(1, "egret-controlplane: "+err.Error())
	}
}

func fail(code int, message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(code)
}
