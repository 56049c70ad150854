package controller

import (
	"testing"

	"github.com/egret-net/egret/internal/metrics/metricstest"
)

func TestMetricsAreDocumented(t *testing.T) { metricstest.Documented(t, NewMetrics().Registry) }
