package metrics

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egret-net/egret/internal/version"
)

// NewBuildInfo returns the metric that says of which version the program is.
func NewBuildInfo() prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "egret_build_info",
		Help: "1, with the version of the program and of Go as labels."}, []string{"version", "goversion"})
	info.WithLabelValues(version.OfProgram(), runtime.Version()).Set(1)
	return info
}
