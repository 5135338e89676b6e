package plan

import "fmt"

// endless returns a flow for which time would not pass, nil if there is none: it never has sent
// everything, and all that it sends is answered at once.
func (x *Experiment) endless() *Flow {
	p := &x.Path
	timeless := p.Down.Delay+p.Up.Delay+x.HostJitter == 0 && p.Down.Rate == nil &&
		p.Up.Rate == nil && p.Down.Jitter == nil && p.Up.Jitter == nil
	for i := range x.Flows {
		f := &x.Flows[i]
		if timeless && f.Delay == 0 && f.Protocol == TCP && f.App.Size == 0 && f.App.Rate == 0 &&
			f.App.Echo == nil && f.App.Objects == nil {
			return f
		}
	}
	return nil
}

// Warnings are what a person should know before he believes what comes out, each once.
func Warnings(cells []Cell) []string {
	var list []string
	for i := range cells {
		if c := &cells[i]; c.HostJitter == 0 && len(c.Flows) > 1 && c.Path.Down.Rate != nil {
			list = append(list, fmt.Sprintf("host_jitter is 0: %d flows can lock in phase, and "+
				"their shares are then artifacts (Floyd and Jacobson 1992); "+
				"set host_jitter to 1svc",
				len(c.Flows)))
			break
		}
	}
	return list
}
