package world_test

import (
	"testing"

	"github.com/egret-net/egret/internal/world"
)

func TestParseHardwareAddr(t *testing.T) {
	for text, want := range map[string]string{
		"02:00:00:00:00:0A": "02:00:00:00:00:0a", "fe:ff:ff:ff:ff:ff": "fe:ff:ff:ff:ff:ff",
		"": "", "02:00:00:00:00": "", "02:00:00:00:00:0a:0b": "", "02-00-00-00-00-0a": "", "0200.0000.000a": "",
		"2:0:0:0:0:a":       "",
		"01:00:5e:00:00:01": "", "33:33:00:00:00:01": "", "ff:ff:ff:ff:ff:ff": "", "00:00:00:00:00:00": "",
		"02:00:00:00:00:0a\n": "", " 02:00:00:00:00:0a": "", "02:00:00:00:00:0a,output:1": "",
		"02:00:00:00:00:0a\ncookie=0xbad actions=drop": "",
	} {
		a, err := world.ParseHardwareAddr(text)
		if a.String() != want || (err == nil) != (want != "") || a.IsValid() != (want != "") {
			t.Errorf("%q: have %q, %v; want %q", text, a, err, want)
		}
	}
}
