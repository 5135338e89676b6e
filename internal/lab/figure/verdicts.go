package figure

// verdictGroup is verdicts about the same thing, in several cells.
type verdictGroup struct {
	About    string
	Verdicts []Verdict
}

// Several reports whether there is more than one.
func (g verdictGroup) Several() bool { return len(g.Verdicts) > 1 }

// grouped are verdicts with those about the same thing, one after the other, in one group.
func grouped(list []Verdict) []verdictGroup {
	var groups []verdictGroup
	for _, v := range list {
		if n := len(groups); n > 0 && groups[n-1].About == v.About {
			groups[n-1].Verdicts = append(groups[n-1].Verdicts, v)
			continue
		}
		groups = append(groups, verdictGroup{v.About, []Verdict{v}})
	}
	return groups
}
