// Package version says of which version a program is.
//
// In: the commit's version, from the build. Out: the version, and the flag --version. It has no imports of this module:
// another version links programs again, and compiles nothing.
package version

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// described is what git describe says of the commit, as in v1.2.3-4-g0123456789ab. The Makefile sets it with -X.
var described string

// OfProgram returns the program's version: the one of the Makefile's build, else the one that the Go command recorded.
func OfProgram() string {
	if described != "" {
		return described
	}
	return recordedVersion(debug.ReadBuildInfo())
}

func recordedVersion(info *debug.BuildInfo, has bool) string {
	if !has || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// AddFlag registers --version, which prints name and version, and ends the program.
func AddFlag(f *flag.FlagSet) {
	f.BoolFunc("version", "print the version, and end", func(string) error {
		PrintLine(os.Stdout, f.Name())
		os.Exit(0)
		return nil
	})
}

// Template is the line for commands of cobra.
const Template = "{{.Name}} {{.Version}}\n"

// PrintLine writes a line with a program's name and version.
func PrintLine(to io.Writer, program string) { fmt.Fprintln(to, program, OfProgram()) }
