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
