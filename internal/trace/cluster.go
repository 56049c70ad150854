package trace

import (
	"fmt"
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// Network is the nodes' plans, by node name.
type Network map[string]*plan.State

// Cluster is plans that were read.
type Cluster struct {
	zones map[string]*zone
	nodes []string // by name: of two nodes that could be meant, the answer is the same each time
}

// Read reads plans. The error names the first row that the tracer does not know all of, and the text of it.
func Read(net Network) (*Cluster, error) { return NewReader().Read(net) }

// Reader reads plans and keeps what it has made of each text, for plans that differ in little.
type Reader struct {
	matches memory[match]
	flows   memory[flow]
	rules   memory[rule]
}

// NewReader is a Reader that has read nothing.
func NewReader() *Reader { return &Reader{memory[match]{}, memory[flow]{}, memory[rule]{}} }

// Read is like the function Read.
func (r *Reader) Read(net Network) (*Cluster, error) {
	return r.Reread(&Cluster{}, net)
}

// Reread is a cluster of which some nodes' plans have changed since they were read: those given.
func (r *Reader) Reread(former *Cluster, changed Network) (*Cluster, error) {
	c := &Cluster{zones: map[string]*zone{}}
	maps.Copy(c.zones, former.zones)
	for _, node := range slices.Sorted(maps.Keys(changed)) {
		z, err := r.readZone(node, changed[node])
		if err != nil {
			return nil, fmt.Errorf("the plan of %s: %w", node, err)
		}
		c.zones[node] = z
	}
	c.nodes = slices.Sorted(maps.Keys(c.zones))
	return c, nil
}

// memory is texts and what they were parsed to.
type memory[T any] map[string]parsed[T]

type parsed[T any] struct {
	form T
	err  error
}

func (m memory[T]) parseOnce(text string, parse func(string) (T, error)) (T, error) {
	p, known := m[text]
	if !known {
		p.form, p.err = parse(text)
		m[text] = p
	}
	return p.form, p.err
}
