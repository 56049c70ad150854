package demo

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

func TestParseAnswers(t *testing.T) {
	const a, b = "http://172.18.0.100:8080/clientip", "http://[fc00:f853:ccd:e793::100]:8080/clientip"
	have := parseAnswers("172.18.0.33:41000\t" + a + "\t\n" +
		"[fc00:f853:ccd:e793::33]:41001\t" + b + "\t\n" +
		"[::ffff:172.18.0.44]:41002\t" + a + "\t\n" +
		"\t" + a + "\tFailed to connect to 172.18.0.100 port 8080 after 0 ms: Connection refused\n" +
		"\t" + b + "\tConnection timed out after 2001 milliseconds\n" +
		"<html>\t" + b + "\t\n")
	want := map[string][]answer{
		a: append(saw("172.18.0.33", "172.18.0.44"), answer{failure: "refused"}),
		b: append(saw("fc00:f853:ccd:e793::33"), answer{failure: "no answer"},
			answer{failure: "not an address: <html>"}),
	}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("have %v\nwant %v", have, want)
	}
}

func TestTargetURL(t *testing.T) {
	for ip, want := range map[string]string{
		"172.18.0.100": "http://172.18.0.100:8080/clientip",
		"fc00::100":    "http://[fc00::100]:8080/clientip",
	} {
		if have := (target{ip: netip.MustParseAddr(ip)}).clientURL(); have != want {
			t.Errorf("have %s, want %s", have, want)
		}
	}
}

func TestParseSamples(t *testing.T) {
	const url = "http://172.18.0.100:8080/clientip"
	have, err := parseSamples("1795269600.000100\t1795269600.010100\t172.18.0.33:4000\t" + url + "\t\n")
	want := []sample{{time.UnixMicro(1795269600000100), time.UnixMicro(1795269600010100), url,
		answer{source: netip.MustParseAddr("172.18.0.33")}}}
	if err != nil || !slices.Equal(have, want) {
		t.Errorf("have %v, %v, want %v", have, err, want)
	}
	for _, bad := range []string{"x\n", "1.000000\tyesterday\ta\tb\tc\n"} {
		if _, err := parseSamples(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestFirstThrough(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	mine, other := saw("172.18.0.33")[0], saw("172.18.0.44")[0]
	samples := []sample{
		{at(0), at(10), "", mine},   // began at the former node
		{at(20), at(90), "", mine},  // answered late
		{at(30), at(40), "", other}, // another address
		{at(50), at(60), "", mine},
	}
	if have, ok := firstThrough(samples, mine.source, at(15)); !ok || !have.Equal(at(60)) {
		t.Errorf("have %v, %t, want 60 ms", have.UnixMilli(), ok)
	}
	if _, ok := firstThrough(samples, mine.source, at(50)); ok {
		t.Error("a connection that began before was taken")
	}
}

func TestEgressIPOfFamilies(t *testing.T) {
	for family, want := range map[sandbox.IPFamily][]string{
		sandbox.IPv4: {"172.18.0.33", "172.18.0.44"},
		sandbox.IPv6: {"fc00:f853:ccd:e793::33", "fc00:f853:ccd:e793::44"},
		sandbox.Dual: {"172.18.0.33", "172.18.0.44", "fc00:f853:ccd:e793::33", "fc00:f853:ccd:e793::44"},
	} {
		e, err := egressIP(family)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(e.Spec.EgressIPs, want) || e.Name != exampleName {
			t.Errorf("%s: %s has %v, want %v", family, e.Name, e.Spec.EgressIPs, want)
		}
	}
}
