// Command tools renders deploy/ from the chart deploy/helm/egret, and packages the chart.
//
// In: the chart. Out: the files of deploy/ and deploy/cluster, each of which is a template of the same name with the
// chart's default values; rendered.sha256; and with -package the chart as a file for helm install. It is a module of
// its own because of Helm, which nothing else of Egret needs.
package main
