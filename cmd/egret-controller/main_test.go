package main

import (
	"os"
	"testing"

	"github.com/egret-net/egret/test/docstest"
)

func TestMain(m *testing.M) {
	docstest.AsProgram(func() { parseFlags([]string{"--help"}) }) //nolint:errcheck // it exits
	os.Exit(m.Run())
}

// TestFlagsAreDocumented compares docs/reference.md with egret-controller --help.
func TestFlagsAreDocumented(t *testing.T) { docstest.CompareFlags(t, "flags of egret-controller") }
