package control

// Impairments asks what interfaces do to packets on purpose, and did; answer []Impairment, each
// interface's way out and then its way in.
type Impairments struct {
	Iface string `json:"iface,omitempty"` // empty: every interface
}

func (Impairments) answers([]Impairment) {}

// Impair has an interface do something to the packets that it sends, that it receives, or both,
// in place of what it did; answer []Impairment, the ways that it set.
type Impair struct {
	Iface string `json:"iface,omitempty"` // empty: every interface
	Way   Way    `json:"way,omitempty"`   // empty: both
	// Words are those of tc-netem(8) and tc-codel(8), such as "delay 20ms 5ms loss 2% rate 10mbit
	// limit 100 codel seed 7"; "off": nothing. An error tells which word is wrong.
	Words string `json:"words"`
}

func (Impair) answers([]Impairment) {}

// Way is a direction of packets at an interface.
type Way string

// The ways.
const (
	WayOut  Way = "out" // what the node sends
	WayIn   Way = "in"  // what it receives
	WayBoth Way = "both"
)

// Impairment is one way of an interface.
type Impairment struct {
	Iface string `json:"iface"`
	Way   Way    `json:"way"`
	Words string `json:"words"`          // "nothing": packets pass as they are
	Seed  uint64 `json:"seed,omitempty"` // what Words say, or what was drawn if chance is in it
	// Seen is how many packets came since they first were impaired, and Passed how many have
	// left. Inside is how many are on their way now, and Waiting how many of them for the rate.
	// Seen + Duplicated = Passed + Lost + QueueDropped + Overflowed + Inside, always.
	Seen         uint64 `json:"seen"`
	SeenBytes    uint64 `json:"seen_bytes"`
	Passed       uint64 `json:"passed"`
	PassedBytes  uint64 `json:"passed_bytes"`
	Lost         uint64 `json:"lost"`
	QueueDropped uint64 `json:"queue_dropped"` // by the queue of the rate
	Overflowed   uint64 `json:"overflowed"`    // because more was inside than may be
	Duplicated   uint64 `json:"duplicated"`
	Corrupted    uint64 `json:"corrupted"`
	Truncated    uint64 `json:"truncated"`
	Reordered    uint64 `json:"reordered"`
	Delayed      uint64 `json:"delayed"` // that left later than they came
	Marked       uint64 `json:"marked"`  // congestion experienced, by CoDel
	Inside       int    `json:"inside"`
	Waiting      int    `json:"waiting"`
}
