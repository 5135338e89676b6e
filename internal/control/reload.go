package control

// Reload has the node read its file again and be as that says now, as far as it says something
// else than before: interfaces, neighbors, links, routes, RIP, doors and settings change, and
// connections go on. What was changed by hand and is as before in the file stays as it is. A file
// with mistakes, and one that asks for what only a new node can be, changes nothing. Connections
// whose local address is no more end. Answer Reloaded.
type Reload struct {
	// Try only tells what would be done.
	Try bool `json:"try,omitempty"`
	// Release is a first step, of nodes that take ports from each other: the node gives up the UDP
	// ports and doors that its file has no more, and changes nothing else. What comes in there is
	// lost. The Reload that follows is the second step; without one in 30 s the node takes back
	// what it gave up.
	Release bool `json:"release,omitempty"`
	// All, with Release, gives up every one, as a node does that is about to end.
	All bool `json:"all,omitempty"`
	// Undo is about the file as it was before the last Release, not as it is now: Release with Undo
	// gives up what that did not have, and Undo alone is the second step back.
	Undo bool `json:"undo,omitempty"`
}

func (Reload) answers(Reloaded) {}

// Reloaded is what came of a Reload.
type Reloaded struct {
	// Changes are a line each.
	Changes []string `json:"changes"`
	// Restart is what only a new node can be, a line each; then nothing was changed.
	Restart []string `json:"restart"`
	// Ended are the connections, listeners, servers and fetches whose local address is no more, a
	// line each.
	Ended []string `json:"ended"`
}
