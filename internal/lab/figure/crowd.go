package figure

import (
	"fmt"
	"slices"
)

// mostLines is how many curves of a crowd are drawn: more are a smear.
const mostLines = 48

// crowd picks of many flows those that are drawn, evenly from the first to the last.
func crowd(flows []*flow) []*flow {
	if len(flows) <= mostLines {
		return flows
	}
	list := make([]*flow, mostLines)
	for i := range list {
		list[i] = flows[i*(len(flows)-1)/(mostLines-1)]
	}
	return list
}

// keyed are the flows that the key of a panel names: all of a few; of a crowd the first, the middle
// one and the last, or the first and the last of each kind.
func keyed(flows []*flow) map[*flow]bool {
	named := map[*flow]bool{}
	if len(flows) <= mostCurves {
		for _, f := range flows {
			named[f] = true
		}
		return named
	}
	var kinds []string
	for _, f := range flows {
		if !slices.Contains(kinds, f.Label) {
			kinds = append(kinds, f.Label)
		}
	}
	for _, kind := range kinds[:min(len(kinds), mostCurves/2)] {
		var own []*flow
		for _, f := range flows {
			if f.Label == kind {
				own = append(own, f)
			}
		}
		named[own[0]], named[own[len(own)-1]] = true, true
		if len(kinds) == 1 {
			named[own[len(own)/2]] = true
		}
	}
	return named
}

// crowdText says what a crowd's curves are; empty: there is none.
func crowdText(all, drawn int) string {
	switch {
	case all <= mostCurves:
		return ""
	case drawn < all:
		return fmt.Sprintf(" Of %d flows %d are drawn, from the first, dark, to the last, light.",
			all, drawn)
	}
	return " From the first flow, dark, to the last, light."
}
