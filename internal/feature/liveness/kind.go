package liveness

import (
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/feature"
)

// DescribeKind describes the sessions that watch other nodes.
func DescribeKind() feature.Kind { return feature.Kind{Features: []compile.Feature{Sessions{}}} }
