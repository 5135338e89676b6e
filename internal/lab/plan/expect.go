package plan

// expectations reads what should come out.
func (d *decoder) expectations(n *node, x *Experiment) {
	if n.kind != list {
		d.bad(n, d.shown(n)+" is not a list of expectations", "a list such as [goodput > 1Mbit/s]")
		return
	}
	for _, item := range n.items {
		text, ok := d.scalar(item, "an expectation such as goodput > 1Mbit/s")
		if !ok {
			continue
		}
		x.Expect = append(x.Expect, Expectation{Value: text, Relation: Holds, Line: item.line})
	}
}
