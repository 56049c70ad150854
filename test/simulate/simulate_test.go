package simulate

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStories tells each story of testdata with some seeds. No source is wrong. A story with a limit of the promise has
// sources excused with at least one seed: once none is, the line goes from the story.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.story")
	if err != nil || len(files) == 0 {
		t.Fatal("no stories: ", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".story"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tell(t, string(text))
		})
	}
}

// tell tells a story with some seeds.
func tell(t *testing.T, text string) {
	excused := 0
	for seed := range uint64(5) {
		r := Run(seed, text)
		if r.Walks == 0 {
			t.Fatal("no packet was walked")
		}
		if r.Wrong != "" {
			t.Errorf("seed %d: %s", seed, r.Wrong)
		}
		excused += r.Excused
	}
	if showsLimit(text) && excused == 0 {
		t.Error("no source had to be excused: this limit is gone. Take the line out of the story")
	}
}

// TestOneSeedIsOneRun: a run can be had again.
func TestOneSeedIsOneRun(t *testing.T) {
	text, err := os.ReadFile("testdata/relabelled.story")
	if err != nil {
		t.Fatal(err)
	}
	first := Run(7, string(text))
	for range 2 {
		if again := Run(7, string(text)); again != first {
			t.Errorf("%+v, then %+v", first, again)
		}
	}
}

// TestNetworksHaveTheSameAddresses: pods of two networks and of the default one have one address on one node. Without
// that, stories of networks would show little.
func TestNetworksHaveTheSameAddresses(t *testing.T) {
	s := newSim(0, "")
	s.run(begin.Add(settling))
	s.setNetwork("blue", 1)
	s.setNetwork("red", 2)
	for _, name := range []string{"p", "blue/r", "red/u"} {
		s.startPod(name, "n1", "none")
	}
	s.run(begin.Add(settling + 10*time.Second))
	own := map[netip.Addr]int{}
	for _, x := range s.packets() {
		own[x.src]++
	}
	if len(s.sending()) != 3 || len(own) != 2 {
		t.Errorf("%d of 3 pods send, with %v", len(s.sending()), own)
	}
}
