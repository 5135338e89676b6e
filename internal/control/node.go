package control

// About asks for the node's name and mode; answer Node.
type About struct{ Answer[Node] }

// Node is a node's name and mode.
type Node struct {
	Name       string `json:"name"`
	OldGrammar bool   `json:"old_grammar"` // its .lnx file has the syntax from before 2022
	Forwarding bool   `json:"forwarding"`
	Capturing  string `json:"capturing,omitempty"` // the file of PcapStart
}

// Show asks for settings, sorted by key; answer []Setting.
type Show struct {
	Answer[[]Setting]
	// Key is a key or the start of several ("tcp."); empty: all.
	Key string `json:"key,omitempty"`
}

// Set changes a setting and returns it with its new value; answer Setting.
type Set struct {
	Answer[Setting]
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Setting is a setting that can be changed at run time.
type Setting struct {
	Key   string `json:"key"` // such as "tcp.options"
	Value string `json:"value"`
	Doc   string `json:"doc"` // one line: its effect and values
	// Values are all its values, if it has only a few.
	Values []string `json:"values,omitempty"`
}

// Verbose starts or stops Segment events for the segments of a socket; answer Nothing.
type Verbose struct {
	Answer[Nothing]
	On  bool `json:"on"`
	SID int  `json:"sid"` // AllSockets: all, including future ones
}

// AllSockets is the SID of all sockets.
const AllSockets = -1

// PcapStart starts a capture of every packet of every interface to a pcapng file; answer Nothing.
type PcapStart struct {
	Answer[Nothing]
	File    string `json:"file"`
	Snaplen int    `json:"snaplen,omitempty"` // bytes kept of a packet; 0: all
	// Overwrite is as in Record.
	Overwrite bool `json:"overwrite,omitempty"`
}

// PcapStop stops the capture; answer Capture.
type PcapStop struct{ Answer[Capture] }

// Capture is the result of a capture of every packet.
type Capture struct {
	File    string `json:"file"`
	Packets uint64 `json:"packets"`
	Missed  uint64 `json:"missed"` // packets that the writer was too slow for
}
