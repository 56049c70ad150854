package compile_test

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/world"
)

// The promises are 100 ms for a full compile and 1 ms for the change of one pod, at 500 nodes, 10,000 pods and 1,000
// EgressIPs, on the machine on which yardstick takes yardstickTime. On any other they scale with it. Nothing here looks
// at the clock: it counts the time that this process had a processor, which other programs on a busy machine do not
// lengthen. Of one pod's promise a tenth is allowed: a walk over all pods takes 0.2 ms.
const (
	yardstickTime = 20 * time.Millisecond
	fullTime      = 100 * time.Millisecond
	podTime       = time.Millisecond / 10
	// What a compile allocates is the same on every machine. These are half as much again as when they were written.
	fullAllocations = 400_000
	podAllocations  = 48
	// One network changes that 100 EgressIPs of 50 pods share, or one of the 10,000 of one EgressIP.
	networkTime            = 5 * time.Millisecond
	networkAllocations     = 12_500
	manyNetworksTime       = 15 * time.Millisecond
	manyNetworkAllocations = 15_500
)

// budgetRuns is how often each thing is measured: the least counts.
const budgetRuns = 7

// yardstick is a fixed piece of work of the kind that a compile does: it makes strings, maps and sorted lists of them.
func yardstick() int {
	words := map[string][]string{}
	for i := range 64_000 {
		key := fmt.Sprint("pod-", i%2_000)
		words[key] = append(words[key], fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
	}
	size := 0
	for _, list := range words {
		slices.Sort(list)
		size += len(strings.Join(list, ","))
	}
	return size
}

// TestBudget: a full compile, the change of one pod and that of one network stay within their budgets.
func TestBudget(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes one kind of work slower than another; make unit runs this test without it, too")
	}
	w := compiletest.Big()
	m := compile.NewMemo(all.Features())
	m.Update(w)
	unit, full, pod, network, many := newCost(), newCost(), newCost(), newCost(), newCost()
	shared, single := swapNetwork(100, 10), swapNetwork(1, 10_000)
	for lap := range budgetRuns {
		unit.measure(1, func() { yardstick() })
		full.measure(1, func() { compile.Full(w, all.Features()) })
		pod.measure(budgetPods, func() { movePods(m, w, lap) })
		network.measure(1, shared)
		many.measure(1, single)
	}
	for _, b := range []struct {
		what        string
		have        cost
		time        time.Duration
		allocations uint64
	}{{"a full compile", full, fullTime, fullAllocations}, {"one pod", pod, podTime, podAllocations},
		{"one network of 100 EgressIPs", network, networkTime, networkAllocations},
		{"one of 10,000 networks", many, manyNetworksTime, manyNetworkAllocations}} {
		scaled := time.Duration(float64(b.have.time) * float64(yardstickTime) / float64(unit.time))
		t.Logf("%s: %s and %d allocations; with a yardstick of %s, not %s: %s", b.what, b.have.time, b.have.allocations,
			yardstickTime, unit.time, scaled)
		if scaled > b.time {
			t.Errorf("%s takes %s on a machine with a yardstick of %s; its budget is %s",
				b.what, scaled, yardstickTime, b.time)
		}
		if b.have.allocations > b.allocations {
			t.Errorf("%s makes %d allocations; its budget is %d", b.what, b.have.allocations, b.allocations)
		}
	}
}

// memoBytes is how much a Memo may keep of the big world, beside the world: a tenth more than when this was written.
const memoBytes = 23 << 20

// TestBudgetOfMemory: what a Memo keeps stays within its budget.
func TestBudgetOfMemory(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes one kind of work slower than another; make unit runs this test without it, too")
	}
	w, m := compiletest.Big(), compile.NewMemo(all.Features())
	before := liveBytes()
	m.Update(w)
	kept := liveBytes() - before
	runtime.KeepAlive(m)
	if t.Logf("%d bytes", kept); kept > memoBytes {
		t.Errorf("a memo of the big world keeps %d bytes; its budget is %d", kept, memoBytes)
	}
}

// liveBytes are those of the heap that are not garbage.
func liveBytes() uint64 {
	runtime.GC()
	runtime.GC() // for what finalizers and pools still kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestBudgetOfNewEgressIP: what an EgressIP costs from its creation to its end does not grow with the pods of the same
// namespace that it does not select.
func TestBudgetOfNewEgressIP(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes one kind of work slower than another; make unit runs this test without it, too")
	}
	few, many := newCost(), newCost()
	besideFew, besideMany := newEgressIP(10), newEgressIP(10_000)
	for range budgetRuns {
		few.measure(1, besideFew)
		many.measure(1, besideMany)
	}
	t.Logf("beside 10 pods: %s, %d allocations; beside 10,000: %s, %d", few.time, few.allocations, many.time,
		many.allocations)
	if many.allocations*5 > few.allocations*6 || many.time > 2*few.time {
		t.Errorf("beside 10,000 pods it takes %s and %d allocations, beside 10 pods %s and %d: more than 1.2 times as "+
			"many, or twice as long", many.time, many.allocations, few.time, few.allocations)
	}
}

// budgetPods are moved in one run.
const budgetPods = 500

// movePods gives pods of the big world other addresses than those of the lap before.
func movePods(m *compile.Memo, w *world.World, lap int) {
	for i := range budgetPods {
		w.SetPod(movedPod(i, lap))
		m.Update(w)
	}
}

// movedPod is a pod of the big world with addresses that differ from lap to lap.
func movedPod(i, lap int) *world.Pod {
	p := compiletest.BigPod(i % 10_000)
	p.IPs = compiletest.PodIPs(i%200, 1+(i+lap)%250)
	return p
}

// cost is the least that some runs of a thing took.
type cost struct {
	time        time.Duration // on processors
	allocations uint64
}

func newCost() cost { return cost{time: math.MaxInt64, allocations: math.MaxUint64} }

// measure runs what does a thing so many times. Garbage is not collected meanwhile: it may be of what ran before.
func (c *cost) measure(times int, do func()) {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := processorTime()
	do()
	took := processorTime() - start
	runtime.ReadMemStats(&after)
	c.time = min(c.time, took/time.Duration(times))
	c.allocations = min(c.allocations, (after.Mallocs-before.Mallocs)/uint64(times))
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it fails for no process
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
