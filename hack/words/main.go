// Words counts how the project is written, and fails where it is written worse than ceilings.txt allows.
//
// In: the comments and function names of internal, cmd and api, and the pages of docs. Out: each place of a
// figure that is above its ceiling, or with -table all figures. With -update, the ceilings become the present figures.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

const ceilingsFile = "hack/words/ceilings.txt"

func main() {
	table := flag.Bool("table", false, "print all figures, as shares too")
	update := flag.Bool("update", false, "make the present figures the ceilings")
	flag.Parse()
	if err := run(*table, *update); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run(table, update bool) error {
	figures, err := measure(".")
	if err != nil {
		return err
	}
	if table {
		printTable(os.Stdout, figures)
		return nil
	}
	if update {
		return os.WriteFile(ceilingsFile, formatCeilings(figures), 0o644)
	}
	text, err := os.ReadFile(ceilingsFile)
	if err != nil {
		return err
	}
	ceilings, err := parseCeilings(string(text))
	if err != nil {
		return err
	}
	above := compare(figures, ceilings)
	for _, line := range above {
		fmt.Println(line)
	}
	if len(above) > 0 {
		return errors.New("the figures above exceed their ceilings: write plainer (docs/contributing.md, \"Language\")")
	}
	return nil
}
