package plan

import "fmt"

// Loader reads a file that an experiment names.
type Loader func(name string) ([]byte, error)

// trace reads a rate that is a list of opportunities.
func (d *decoder) trace(n *node, l *link) {
	l.unknown = true
	d.bad(n, "a trace is not known here yet", "rate: 12Mbit/s")
}

// schedule reads a rate that changes with time.
func (d *decoder) schedule(n *node, _ *link) {
	d.bad(n, "a rate that changes is not known here yet", "12Mbit/s")
}

// policer reads who drops what comes faster than is agreed.
func (d *decoder) policer(n *node, _ *link) {
	d.bad(n, "a policer is not known here yet", "")
}

// noFiles is the Loader of a File without one.
func noFiles(name string) ([]byte, error) {
	return nil, fmt.Errorf("%s: nothing reads files here", name)
}

// once reads each file no more than one time.
func once(load Loader) Loader {
	type answer struct {
		text []byte
		err  error
	}
	seen := map[string]answer{}
	return func(name string) ([]byte, error) {
		a, ok := seen[name]
		if !ok {
			a.text, a.err = load(name)
			seen[name] = a
		}
		return a.text, a.err
	}
}
