package gateway

import (
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/feature"
)

// DescribeKind describes what each node holds, whatever objects there are.
func DescribeKind() feature.Kind {
	return feature.Kind{Features: []compile.Feature{Settings{}, Bridge{}, Management{}, Router{}, Networks{},
		Firewall{}}}
}
