// Skips runs a go test command and counts what its tests skip: a skip that is not on the list of this folder fails the
// run, as a test that failed does. It prints what go test prints, all of it with -v.
//
//	skips [-v] RUN COMMAND...
//
// RUN is the name of the run in the list, COMMAND must print what go test -json prints.
package main

import (
	"bufio"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

//go:embed list.txt
var list string

func main() {
	verbose := flag.Bool("v", false, "print all that tests print, while they run")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: skips [-v] RUN COMMAND...")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Args()[1:], *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "skips:", err)
		os.Exit(1)
	}
}

// run runs the command, and returns an error if it fails or skips what is not on the list.
func run(name string, command []string, verbose bool) error {
	entries, err := parse(list)
	if err != nil {
		return err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	skips, err := read(stdout, newPrinter(os.Stdout, verbose))
	if failed := cmd.Wait(); failed != nil {
		return fmt.Errorf("%s: %w", strings.Join(command, " "), failed)
	}
	if err != nil {
		return err
	}
	return conclude(os.Stdout, judge(entries, name, skips), partial(command))
}

// read prints the events of a run, and returns its skips.
func read(from io.Reader, p *printer) ([]skip, error) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			p.take(line)
		}
		if err == io.EOF {
			return p.skips, nil
		}
		if err != nil {
			return p.skips, err
		}
	}
}

// partial says whether a command runs some tests only: entries of the list for others match nothing then.
func partial(command []string) bool {
	return slices.ContainsFunc(command, func(arg string) bool {
		return arg == "-run" || strings.HasPrefix(arg, "-run=")
	})
}

// conclude prints a verdict.
func conclude(out io.Writer, v verdict, partial bool) error {
	fmt.Fprintf(out, "skips: %d tests skipped as the list says\n", v.listed)
	for _, e := range v.unused {
		if !partial {
			fmt.Fprintf(out, "skips: no test skipped so in this run, take it off the list (hack/skips/list.txt): %s\n", e)
		}
	}
	for _, s := range v.unlisted {
		fmt.Fprintf(out, "skips: not on the list (hack/skips/list.txt): %s %s: %s\n", s.pkg, s.test, s.words)
	}
	if n := len(v.unlisted); n > 0 {
		return fmt.Errorf("%d tests skipped that are not on the list", n)
	}
	return nil
}
