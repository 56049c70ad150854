package settings

import (
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/test/docstest"
)

// parsed are the flags that this package has, as a command line and an environment set them.
func parsed(t *testing.T, environment []string, args ...string) (map[string]string, error) {
	t.Helper()
	f := flag.NewFlagSet("egret", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	Flags(f)
	SubnetFlags(f)
	TunnelFlags(f)
	MetricsFlags(f)
	APIServerFlags(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	err := FromEnvironment(f, environment)
	have := map[string]string{}
	f.VisitAll(func(g *flag.Flag) { have[g.Name] = g.Value.String() })
	return have, err
}

// TestEnvironment: a key sets its flag. Without keys, and with empty ones, all flags have their defaults. The command
// line beats the environment.
func TestEnvironment(t *testing.T) {
	defaults, err := parsed(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		environment, args []string
		changed           map[string]string
	}{
		"nothing":            {nil, nil, nil},
		"others' variables":  {[]string{"MTU=1300", "EGRET_E2E=1", "PATH=/bin"}, nil, nil},
		"empty values":       {[]string{"EGRET_SETTING_MTU=", "EGRET_SETTING_CLUSTER_SUBNETS="}, nil, nil},
		"of another program": {[]string{"EGRET_SETTING_GATEWAY_MODE=local"}, nil, nil},
		"some keys": {[]string{"EGRET_SETTING_MTU=1300", "EGRET_SETTING_KUBERNETES_SERVICE_HOST=192.0.2.1"}, nil,
			map[string]string{"mtu": "1300", "api-server-host": "192.0.2.1"}},
		"a flag, too": {[]string{"EGRET_SETTING_MTU=1300"}, []string{"--mtu=1400"}, map[string]string{"mtu": "1400"}},
	} {
		want := maps.Clone(defaults)
		maps.Copy(want, c.changed)
		if have, err := parsed(t, c.environment, c.args...); err != nil || !maps.Equal(have, want) {
			t.Errorf("%s: %v\nhave %v\nwant %v", name, err, have, want)
		}
	}
}

// TestEnvironmentMistakes: a key that is not known, or a value that makes no sense, is named.
func TestEnvironmentMistakes(t *testing.T) {
	for variable, want := range map[string]string{
		"EGRET_SETTING_CLUSTER_SUBNET=10.0.0.0/8/24": "has the key CLUSTER_SUBNET, which is not a setting",
		"EGRET_SETTING_MTU=x":                        `egret-system/egret, MTU "x": parse error: see --mtu`,
	} {
		if _, err := parsed(t, []string{variable}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", variable, err, want)
		}
	}
}

// TestKeysAreNamed: an error about flags also has the keys of the ConfigMap, each once.
func TestKeysAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"--gateway-v4-join-subnet 100.64.0.0/20 is too small": " (in ConfigMap egret-system/egret: JOIN_SUBNET_V4)",
		"--service-subnets and --cluster-subnets differ":      " (in ConfigMap egret-system/egret: CLUSTER_SUBNETS, SERVICE_SUBNETS)",
		`MTU "x": parse error: see --mtu`:                     "",
		"this node's name is not known: give --node-name":     "",
	} {
		if have := NameKeys(errors.New(text)).Error(); have != text+want {
			t.Errorf("have %s\nwant %s%s", have, text, want)
		}
	}
	if err := NameKeys(nil); err != nil {
		t.Error(err)
	}
}

// TestAPIServer: a program in a pod does not start without a host, and needs no port.
func TestAPIServer(t *testing.T) {
	for _, c := range []struct{ args, kubeconfig, want, fails string }{
		{"", "", "", "give KUBERNETES_SERVICE_HOST in ConfigMap egret-system/egret"},
		{"", "/etc/kubeconfig", "", ""},
		{"--api-server-host=192.0.2.1", "", "192.0.2.1:6443", ""},
		{"--api-server-host=2001:db8::1 --api-server-port=443", "", "[2001:db8::1]:443", ""},
		{"--api-server-host=api.example.org --api-server-port=0", "", "", "--api-server-port 0: give a TCP port"},
		{"--api-server-host=API.example.org.", "", "API.example.org.:6443", ""},
		{"--api-server-host=fe80::1%eth0", "", "[fe80::1%eth0]:6443", ""},
		{"--api-server-host=https://192.0.2.1:6443", "", "", `"https://192.0.2.1:6443" is neither an address nor a name`},
		{"--api-server-host=https://192.0.2.1", "/etc/kubeconfig", "", ""},
		{"--api-server-host=https://api.example.org", "", "", "without https:// and without a port"},
		{"--api-server-host=api.example.org:6443", "", "", "and the port in KUBERNETES_SERVICE_PORT"},
		{"--api-server-host=192.0.2.1:6443", "", "", "is neither"},
		{"--api-server-host=[2001:db8::1]", "", "", "is neither"},
	} {
		f := flag.NewFlagSet("egret", flag.ContinueOnError)
		a := APIServerFlags(f)
		if err := f.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		have, err := a.AddressFor(c.kubeconfig)
		if have != c.want || (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %q, %v", c.args, have, err)
		}
	}
}

// keyLine is a key in config.yaml: live, or with its default in a comment.
var keyLine = regexp.MustCompile(`(?m)^  (# )?([A-Z][A-Z0-9_]+): ("[^"]*"|\S+)`)

// TestConfigMap: the file of settings gives the address of the API server alone, and nothing for it. It has every other
// key in a comment, with the default that the programs have.
func TestConfigMap(t *testing.T) {
	manifest, err := os.ReadFile("../../deploy/cluster/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, _ := docstest.ReadPage(t)
	var keys []string
	for _, m := range keyLine.FindAllStringSubmatch(string(manifest), -1) {
		live, key, value := m[1] == "", m[2], strings.Trim(m[3], `"`)
		keys = append(keys, key)
		if live != (key == "KUBERNETES_SERVICE_HOST") || live && value != "" {
			t.Errorf("%s is given: %t, as %q", key, live, value)
		}
		row := regexp.MustCompile("(?m)^\\| `--" + FlagOf(key) + "`[^|]*\\| `?([^|`]*)`? *\\|").FindStringSubmatch(page)
		if row == nil || strings.TrimSpace(row[1]) != strings.TrimPrefix(value, "0") {
			t.Errorf("%s: config.yaml says the default is %q, docs/reference.md says %q", key, value, row)
		}
	}
	slices.Sort(keys)
	if want := slices.Sorted(maps.Keys(flagByKey)); !slices.Equal(keys, want) {
		t.Errorf("config.yaml has the keys %q\nwant %q", keys, want)
	}
}
