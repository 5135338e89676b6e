package plan

// mahimahi reads a chain of mahimahi's shells.
func (d *decoder) mahimahi(n *node, _, _ *link) {
	d.bad(n, "mahimahi's commands are not known here yet", "path")
}
