package control

// Reload has the node read its file again and be as that says now, as far as it says something
// else than before: interfaces, neighbors, links, routes, RIP, doors and settings change, and
// connections go on. What was changed by hand and is as before in the file stays as it is. A file
// with mistakes, and one that asks for what only a new node can be, changes nothing. Connections
// whose local address is no more end. Answer Reloaded.
type Reload struct {
	// Try only tells what would be done.
	Try bool `json:"try,omitempty"`
}

func (Reload) answers(Reloaded) {}

// Reloaded is what came of a Reload.
type Reloaded struct {
	// Changes are a line each.
	Changes []string `json:"changes"`
	// Restart is what only a new node can be, a line each; then nothing was changed.
	Restart []string `json:"restart"`
	// Ended are the connections and listeners whose local address is no more, a line each.
	Ended []string `json:"ended"`
}
