package lab

import (
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
)

// settingsText is what a cell has of what is swept, in one line.
func settingsText(set []plan.Setting) string {
	parts := make([]string, len(set))
	for i, s := range set {
		parts[i] = s.Key + "=" + s.Value
	}
	return strings.Join(parts, " ")
}

// settingsOf is that of a cell, with its clock where there are several.
func (r *Results) settingsOf(cell int) string {
	text := settingsText(r.Cells[cell].Set)
	if r.Real {
		text = strings.TrimSpace(text + " time=" + r.clockName(cell))
	}
	return text
}

// cellText is what a cell has of what is swept, in short; empty: nothing is.
func (r *Results) cellText(cell int) string { return r.setText(r.Cells[cell].Set) }

// timedText is that and the cell's clock, where there are several.
func (r *Results) timedText(cell int) string {
	text := r.cellText(cell)
	if r.Real {
		text = strings.TrimSpace(text + " " + r.clockName(cell))
	}
	return text
}
