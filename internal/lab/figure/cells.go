package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Setting is the name of a swept variable and its value in a cell, as written.
type Setting struct{ Key, Value string }

// Cell is a point of a sweep, with the results of its runs.
type Cell struct {
	Set []Setting
	// Real means that the cell ran in real time instead of virtual time. Clock is the name of the
	// clock.
	Real   bool
	Clock  string
	Trials []*result.Trial
	// Theory has the values of formulas, and Published has the values of papers. Both describe the
	// whole run or its first flow.
	Theory, Published result.Values
}

// swept returns the keys whose values differ between cells, in the order of the settings.
func swept(cells []Cell) []string {
	values := map[string]string{}
	var order, keys []string
	different := map[string]bool{}
	for i := range cells {
		for _, s := range cells[i].Set {
			if v, ok := values[s.Key]; !ok {
				values[s.Key] = s.Value
				order = append(order, s.Key)
			} else if v != s.Value {
				different[s.Key] = true
			}
		}
	}
	for _, k := range order {
		if different[k] {
			keys = append(keys, k)
		}
	}
	return keys
}

func (c *Cell) value(key string) string {
	for _, s := range c.Set {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// keyedValues lists the values that, like numbers, mean nothing without their key.
var keyedValues = []string{"on", "off", "yes", "no", "true", "false", "none", "infinite"}

// name returns a cell's settings, without the given keys.
func (c *Cell) name(keys []string, without ...string) string {
	var parts []string
	for _, k := range keys {
		if slices.Contains(without, k) {
			continue
		}
		v := c.value(k)
		if _, number := measure([]string{v}); number && v != "" || slices.Contains(keyedValues, v) {
			v = k + " " + v
		}
		parts = append(parts, result.Shown(v))
	}
	if c.Real {
		parts = append(parts, "real")
	}
	return strings.Join(parts, ", ")
}

// references returns the theoretical and the published value of a group's metric, or NaN. These
// values describe the whole run or its first flow.
func (c *compared) references(g result.Group, m result.Metric) (theory, published float64) {
	cell := &c.cells[g.Cell]
	of := func(values result.Values) float64 {
		v, ok := values[m]
		if !ok || g.Flow != "" && g.Flow != cell.Trials[0].Flows[0].Name {
			return math.NaN()
		}
		return v
	}
	return of(cell.Theory), of(cell.Published)
}

// labelled returns a metric's name with its unit, unless the name contains the unit.
func labelled(m result.Metric, u result.Scale) string {
	title := m.Definition().Titled()
	if u.Name == "packets" || slices.Contains(strings.Fields(title), u.Name) {
		return title
	}
	return joined(title, u.Name)
}

func (c *compared) runs() string {
	least, most := math.MaxInt, 0
	for i := range c.cells {
		least, most = min(least, len(c.cells[i].Trials)), max(most, len(c.cells[i].Trials))
	}
	if least < most {
		return fmt.Sprintf("n = %d to %d", least, most)
	}
	return fmt.Sprintf("n = %d", most)
}

// bandName describes the bands of a sweep's curves. It is empty if each cell has only one run.
func (c *compared) bandName() string {
	switch {
	case !slices.ContainsFunc(c.cells, func(c Cell) bool { return len(c.Trials) > 1 }):
		return ""
	case c.cutOff():
		return "95 % confidence interval or quartiles, " + c.runs()
	}
	return "95 % confidence interval, " + c.runs()
}

func describe(cells []Cell) string {
	runs := 0
	for i := range cells {
		runs += len(cells[i].Trials)
	}
	return fmt.Sprintf("%s in %s", plural(runs, "run"), plural(len(cells), "cell"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
