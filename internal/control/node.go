package control

// About returns the node's name and mode.
type About struct{ Answer[Node] }

// Node is a node's name and mode.
type Node struct {
	Name       string `json:"name"`
	OldGrammar bool   `json:"old_grammar"` // the .lnx file has the old syntax, from before 2022
	Forwarding bool   `json:"forwarding"`
	Capturing  string `json:"capturing,omitempty"` // file of the running capture
}

// Show lists settings, always in the same order.
type Show struct {
	Answer[[]Setting]
	// Key is a key, or what several keys begin with, such as "tcp."; empty: all.
	Key string `json:"key,omitempty"`
}

// Set changes a setting and returns it with its new value.
type Set struct {
	Answer[Setting]
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Setting is a setting that can be changed at run time.
type Setting struct {
	Key   string `json:"key"` // name of the setting, such as "tcp.options"
	Value string `json:"value"`
	Doc   string `json:"doc"` // one line about its effect and values
	// Values are all its values, if it has only a few.
	Values []string `json:"values,omitempty"`
}

// Verbose starts or stops Segment events for the segments of a socket.
type Verbose struct {
	Answer[Nothing]
	On  bool `json:"on"`
	SID int  `json:"sid"` // socket; AllSockets: all, including those opened later
}

// AllSockets is the SID of all sockets.
const AllSockets = -1

// PcapStart starts a capture of every packet of every interface to a pcapng file.
type PcapStart struct {
	Answer[Nothing]
	File    string `json:"file"`
	Snaplen int    `json:"snaplen,omitempty"` // bytes kept of each packet; 0: all
	// Overwrite is as in Record.
	Overwrite bool `json:"overwrite,omitempty"`
}

// PcapStop stops the capture.
type PcapStop struct{ Answer[Capture] }

// Capture is the result of a capture of every packet.
type Capture struct {
	File    string `json:"file"`
	Packets uint64 `json:"packets"`
	Missed  uint64 `json:"missed"` // packets lost because the writer was too slow
}
