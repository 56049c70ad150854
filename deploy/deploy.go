// Package deploy holds the manifests every cluster with Egret needs, whatever starts its programs: CRDs, namespace,
// service accounts, roles and admission policies.
//
// In: nothing. Out: the YAML files, to be applied in the order of their names. How the programs themselves run on a
// cluster is in the folder cluster/, which is not embedded. make chart makes all of them from the chart helm/egret.
package deploy

import "embed"

// Manifests are the files *.yaml of this folder; each holds one or several documents.
//
//go:embed *.yaml
var Manifests embed.FS
