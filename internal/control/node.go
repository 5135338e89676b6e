package control

// About asks which node this is; answer Node.
type About struct{}

func (About) answers(Node) {}

// Node is what a node says of itself.
type Node struct {
	Name       string `json:"name"`
	OldGrammar bool   `json:"old_grammar"` // its .lnx file is of the family's generations to 2022
	Forwarding bool   `json:"forwarding"`
	Capturing  string `json:"capturing,omitempty"` // the file that PcapStart opened
}

// Show asks for settings; answer []Setting, sorted by key.
type Show struct {
	// Key is a whole key or the beginning of some ("tcp."); empty: all.
	Key string `json:"key,omitempty"`
}

func (Show) answers([]Setting) {}

// Set changes one setting; answer Setting, as it is now.
type Set struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (Set) answers(Setting) {}

// Setting is one knob that may be turned at run time.
type Setting struct {
	Key   string `json:"key"` // for example "tcp.options"
	Value string `json:"value"`
	Doc   string `json:"doc"` // one line: what it does, which values it takes
	// Values are all values that it takes, if they are a few words.
	Values []string `json:"values,omitempty"`
}

// Verbose has each segment of a socket told as a Segment event, or no more; answer Nothing.
type Verbose struct {
	On  bool `json:"on"`
	SID int  `json:"sid"` // AllSockets: every one, those to come too
}

func (Verbose) answers(Nothing) {}

// AllSockets is the SID that means every socket.
const AllSockets = -1

// PcapStart starts to capture every packet of every interface into a pcapng file; answer Nothing.
type PcapStart struct {
	File    string `json:"file"`
	Snaplen int    `json:"snaplen,omitempty"` // bytes kept of a packet; 0: all
	// Overwrite is as in Record.
	Overwrite bool `json:"overwrite,omitempty"`
}

func (PcapStart) answers(Nothing) {}

// PcapStop ends the capture; answer Capture.
type PcapStop struct{}

func (PcapStop) answers(Capture) {}

// Capture is a capture that has ended.
type Capture struct {
	File    string `json:"file"`
	Packets uint64 `json:"packets"`
	Missed  uint64 `json:"missed"` // packets that the writer was too slow for
}
