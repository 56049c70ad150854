// Package collectors has metrics that are computed when somebody asks for them.
//
// In: functions that say what is so now, and files. Out: collectors for a registry of Prometheus.
package collectors

import "github.com/prometheus/client_golang/prometheus"

// Tell takes the value of one series, with its labels in the order of the description.
type Tell func(d *prometheus.Desc, value float64, labels ...string)

type gauges struct {
	collect      func(Tell)
	descriptions []*prometheus.Desc
}

// NewGauges returns gauges of these descriptions whose series a function tells.
func NewGauges(collect func(Tell), descriptions ...*prometheus.Desc) prometheus.Collector {
	return gauges{collect, descriptions}
}

// Describe is part of prometheus.Collector.
func (g gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range g.descriptions {
		out <- d
	}
}

// Collect is part of prometheus.Collector.
func (g gauges) Collect(out chan<- prometheus.Metric) {
	g.collect(func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	})
}
