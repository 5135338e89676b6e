package plan

import "github.com/tidepool-net/tidepool/internal/lab/formula"

// Scope returns the names that formulas about the cells may use.
func (f *File) Scope(c *Cell) *formula.Scope {
	return (&decoder{variables: f.sweeps}).newScope(&c.Experiment)
}
