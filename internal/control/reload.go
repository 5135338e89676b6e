package control

// Reload makes the node reload its file and apply what has changed in it: interfaces, neighbors,
// links, routes, RIP, port forwards and settings. Connections stay open, except those whose local
// address is removed. Settings changed by hand stay if the file has not changed there. A file with
// errors changes nothing, nor does one that needs a restart.
type Reload struct {
	Answer[Reloaded]
	// Try reports the changes without applying them.
	Try bool `json:"try,omitempty"`
	// Release is the first of two steps by which nodes exchange ports: the node releases the UDP
	// ports and port forwards that its file no longer has, and changes nothing else. Packets for
	// them are lost. The next Reload is the second step; without one in 30 s the node takes its
	// ports back.
	Release bool `json:"release,omitempty"`
	// All, with Release, releases every UDP port and port forward, for a node that is about to
	// stop.
	All bool `json:"all,omitempty"`
	// Undo uses the file as it was before the last Release. With Release, the node releases what
	// that file did not have. Without Release, Undo is the second step of the rollback.
	Undo bool `json:"undo,omitempty"`
}

// Reloaded is the result of a Reload.
type Reloaded struct {
	// Changes has a line for each change.
	Changes []string `json:"changes"`
	// Restart has a line for each change that needs a restart; then nothing was changed.
	Restart []string `json:"restart"`
	// Ended has a line for each connection, listener, server and fetch that was closed because its
	// local address was removed.
	Ended []string `json:"ended"`
}
