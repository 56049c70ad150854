package world_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestViewRecords: whatever is asked of a View, after any change of the world the answer still stands, or its Reader is
// told; and every method of View records something.
func TestViewRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := compiletest.Small("n1", world.SharedGateway)
		for range 20 {
			compiletest.Change(t, w)
		}
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			seed := rapid.Uint64().Draw(t, "questions")
			pods := somePods(w)
			before := askAll(w, pods, seed)
			compiletest.Change(t, w)
			for question, now := range askAll(w, pods, seed) {
				old := before[question]
				if !old.reader.HasRead() {
					t.Fatalf("%s recorded nothing: make it a method of World, or let it record what it reads", question)
				}
				if !*old.stale && !reflect.DeepEqual(old.answer, now.answer) {
					t.Fatalf("%s: %v became %v, and its reader is not told", question, old.answer, now.answer)
				}
			}
		}
	})
}

type reading struct {
	answer []any
	reader *world.Reader
	stale  *bool
}

// somePods are pods of a world, at least one: a View is asked about those alone. What it says of a pod that is over or
// has its host's addresses can follow from the pod that it is given.
func somePods(w *world.World) []*world.Pod {
	w.SetPod(compiletest.Pod(3, "n1"))
	pods := slices.SortedFunc(w.EachPod(), func(a, b *world.Pod) int { return strings.Compare(a.Key(), b.Key()) })
	return slices.DeleteFunc(pods, func(p *world.Pod) bool { return p.Completed || p.HostNetwork })
}

// askAll calls every method of View, some times each, with arguments that follow from the seed.
func askAll(w *world.World, pods []*world.Pod, seed uint64) map[string]reading {
	draw := rand.New(rand.NewPCG(seed, 0))
	out := map[string]reading{}
	view := reflect.TypeFor[*world.View]()
	for i := range view.NumMethod() {
		m := view.Method(i)
		for range 4 {
			args, question := []reflect.Value{{}}, m.Name
			for j := 1; j < m.Type.NumIn(); j++ {
				arg := argument(draw, pods, m.Type.In(j))
				args, question = append(args, reflect.ValueOf(arg)), fmt.Sprintf("%s %+v", question, arg)
			}
			r := reading{stale: new(bool)}
			r.reader = world.NewReader(func() { *r.stale = true })
			args[0] = reflect.ValueOf(r.reader.Reading(w))
			r.answer = answer(m.Name, m.Func.Call(args))
			out[question] = r
		}
	}
	return out
}

// argument is one of those that a compiletest.Small world may know.
func argument(draw *rand.Rand, pods []*world.Pod, t reflect.Type) any {
	i, node := draw.IntN(4), fmt.Sprint("n", 1+draw.IntN(3))
	addr := slices.Concat(compiletest.EgressAddr(i), compiletest.SecondaryAddr(i))[draw.IntN(4)]
	switch t {
	case reflect.TypeFor[string]():
		egressIP, pod := fmt.Sprint("e", i), compiletest.Pod(i, node).Key()
		names := []string{node, node, egressIP, egressIP, pod, "default/kubernetes",
			compiletest.EgressService(i).Key(), ref.DefaultNetwork, "blue",
			fmt.Sprint("ns", i%3)}
		return names[draw.IntN(len(names))]
	case reflect.TypeFor[netip.Addr]():
		return addr
	case reflect.TypeFor[world.PodAddr]():
		return world.PodAddr{Network: i / 2, IP: compiletest.Pod(i, node).IPs[0]}
	case reflect.TypeFor[world.Family]():
		return world.Family(draw.IntN(2))
	case reflect.TypeFor[*world.Pod]():
		return pods[draw.IntN(len(pods))]
	case reflect.TypeFor[*world.Service]():
		return &world.Service{Namespace: "default", Name: fmt.Sprint("s", i)}
	case reflect.TypeFor[*world.Node]():
		return compiletest.Node(1 + draw.IntN(3))
	case reflect.TypeFor[world.Assignment]():
		return world.Assignment{Node: node, IP: addr}
	case reflect.TypeFor[[]world.Assignment]():
		return []world.Assignment{{Node: node, IP: addr}}
	case reflect.TypeFor[world.EgressAddress]():
		return world.EgressAddress{Object: fmt.Sprint("e", i), IP: addr}
	case reflect.TypeFor[ref.Object]():
		return ref.OfKey(fmt.Sprint("e", i))
	case reflect.TypeFor[world.Frontend]():
		return world.Frontend{IP: compiletest.V4(10, 96, 0, 1), Protocol: "tcp", Port: 443}
	}
	panic(fmt.Sprintf("a method of View asks for a %s: say here with which ones to call it", t))
}

// answer is what can be compared. What serves or selects a pod is known by its name: who reads more of it asks for the
// EgressIP.
func answer(method string, results []reflect.Value) []any {
	var out []any
	for _, r := range results {
		switch v := r.Interface().(type) {
		case []string:
			out = append(out, slices.Sorted(slices.Values(v))) // some are in no order
		case []*world.EgressIP:
			out = append(out, names(v...))
		case *world.Service:
			if method == "ServiceSpec" && v != nil { // who reads endpoints asks for the Service
				v = withoutEndpoints(v)
			}
			out = append(out, v)
		case []*world.EgressService:
			for _, s := range v {
				out = append(out, s.Key())
			}
		case *world.EgressService:
			if method != "EgressService" && v != nil {
				out = append(out, v.Key())
				continue
			}
			out = append(out, v)
		case *world.EgressIP:
			if method != "EgressIP" {
				out = append(out, names(v))
				continue
			}
			out = append(out, v)
		default:
			out = append(out, v)
		}
	}
	return out
}

func withoutEndpoints(s *world.Service) *world.Service {
	out := *s
	out.Ports = slices.Clone(s.Ports)
	for i := range out.Ports {
		out.Ports[i].Endpoints = nil
	}
	return &out
}

func names(list ...*world.EgressIP) []string {
	var out []string
	for _, e := range list {
		if e != nil {
			out = append(out, e.Name)
		}
	}
	return out
}
