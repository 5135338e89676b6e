package lab

import (
	"fmt"
	"io"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// List writes a study's cells, a line each, with their numbers.
func (s *Study) List(w io.Writer) error {
	r := &Results{Manifest: s.manifest()}
	t := grid{}
	number := column{head: [2]string{"", "cell"}}
	trials := column{head: [2]string{"", "trials"}}
	flows := column{head: [2]string{"", "flows"}, left: true}
	runs := 0
	for i := range r.Cells {
		number.cells = append(number.cells, fmt.Sprint(i))
		trials.cells = append(trials.cells, fmt.Sprint(r.Cells[i].Trials))
		flows.cells = append(flows.cells, strings.Join(r.Cells[i].Flows, ", "))
		runs += r.Cells[i].Trials
	}
	t.add(number)
	for i := range r.Cells[0].Set {
		c := column{head: [2]string{"", r.shortKey(i)}, left: true}
		for j := range r.Cells {
			c.cells = append(c.cells, result.Shown(r.Cells[j].Set[i].Value))
		}
		t.add(c)
	}
	t.add(trials)
	t.add(flows)
	var b strings.Builder
	t.write(&b)
	fmt.Fprintf(&b, "\n%d runs in cells 0 to %d\n", runs, len(r.Cells)-1)
	_, err := io.WriteString(w, b.String())
	return err
}

// Metrics writes the catalogue of what is measured.
func Metrics(w io.Writer) error {
	var t grid
	name, unit := column{left: true}, column{left: true}
	text := column{left: true}
	for _, d := range result.Catalog() {
		name.cells = append(name.cells, string(d.Name))
		unit.cells = append(unit.cells, d.Unit)
		text.cells = append(text.cells, d.Text)
	}
	name.head, unit.head, text.head = [2]string{"", "metric"}, [2]string{"", "unit"},
		[2]string{"", "what it is"}
	t.add(name)
	t.add(unit)
	t.add(text)
	var b strings.Builder
	t.write(&b)
	_, err := io.WriteString(w, b.String())
	return err
}
