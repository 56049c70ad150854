package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"golang.org/x/term"
)

// screen is where the demo prints: with borders and colours on a terminal, as aligned text elsewhere.
type screen struct {
	out           io.Writer
	rich          bool
	width, height int // of the terminal
}

func newScreen(out io.Writer) screen {
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		width, height, err := term.GetSize(int(f.Fd()))
		return screen{out: out, rich: err == nil, width: width, height: height}
	}
	return screen{out: out}
}

func (s screen) printLine(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// beginPart begins a part.
func (s screen) beginPart(text string) {
	if s.rich {
		text = lipgloss.NewStyle().Bold(true).Render(text)
	}
	s.printLine("\n%s\n", text)
}

func (s screen) printText(text string) {
	if s.rich {
		_, _ = lipgloss.Fprint(s.out, text) // brings the colours down to what the terminal has
		return
	}
	fmt.Fprint(s.out, text)
}

// fitsTerminal says whether the terminal shows a drawing as it is, neither scrolled nor with lines broken.
func (s screen) fitsTerminal(text string) bool {
	return s.rich && lipgloss.Width(text) <= s.width && lipgloss.Height(text) <= s.height
}

// live draws a table again and again in the same place. Where that cannot be, off a terminal or on one that is too
// small, only the last drawing shows.
type live struct {
	screen screen
	lines  int // of the drawing that is on the terminal
}

func (l *live) drawText(text string, last bool) {
	if !last && !l.screen.fitsTerminal(text) {
		return
	}
	if l.lines > 0 {
		fmt.Fprintf(l.screen.out, "\x1b[%dA\x1b[J", l.lines) // up to the first line of the former drawing, and erase
	}
	l.screen.printText(text)
	l.lines = strings.Count(text, "\n")
}

// rowsTable renders rows in their order.
func (s screen) rowsTable(rows []row) string {
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{r.pod, r.node, r.destination, r.seenText(), verdictText(r)})
	}
	return s.renderTable([]string{"POD", "NODE", "DESTINATION", "SOURCE SEEN THERE", ""}, cells)
}

func verdictText(r row) string {
	switch problem := r.problemText(); {
	case r.awaiting:
		return "..."
	case problem != "":
		return "WRONG: " + problem
	}
	return "right"
}

// renderTable renders cells below a header; the last column is a verdict, which the colour goes by.
func (s screen) renderTable(header []string, cells [][]string) string {
	if !s.rich {
		return plainTable(header, cells)
	}
	style := func(line, column int) lipgloss.Style {
		st := lipgloss.NewStyle().Padding(0, 1)
		switch {
		case line == table.HeaderRow:
			return st.Bold(true)
		case column == len(header)-1 && strings.HasPrefix(cells[line][column], "WRONG"):
			return st.Foreground(lipgloss.Red)
		case column == len(header)-1 && cells[line][column] == "right":
			return st.Foreground(lipgloss.Green)
		}
		return st
	}
	t := table.New().Border(lipgloss.RoundedBorder()).BorderStyle(lipgloss.NewStyle().Foreground(lipgloss.BrightBlack)).
		StyleFunc(style).Headers(header...).Rows(cells...)
	return t.Render() + "\n"
}

func plainTable(header []string, cells [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, line := range append([][]string{header}, cells...) {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	_ = w.Flush() // a Builder takes everything
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
