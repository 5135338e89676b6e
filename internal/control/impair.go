package control

// Impairments lists the impairments of interfaces, with counters: for each interface first the sent
// packets, then the received packets.
type Impairments struct {
	Answer[[]Impairment]
	Iface string `json:"iface,omitempty"` // name or number of the interface; empty: every interface
}

// Impair replaces the impairment of the packets that an interface sends, receives, or both, and
// returns the impairments of the directions that it changed.
type Impair struct {
	Answer[[]Impairment]
	Iface string `json:"iface,omitempty"` // name or number of the interface; empty: every interface
	Way   Way    `json:"way,omitempty"`   // direction; empty: both
	// Words are arguments as in tc-netem(8) and tc-codel(8), such as "delay 20ms 5ms loss 2% rate
	// 10mbit limit 100 codel seed 7"; "off": none. An error names the wrong keyword.
	Words string `json:"words"`
}

// Way is a direction of packets at an interface.
type Way string

// These are the directions.
const (
	WayOut  Way = "out" // sent packets
	WayIn   Way = "in"  // received packets
	WayBoth Way = "both"
)

// Impairment is the impairment of one direction of an interface.
type Impairment struct {
	Iface string `json:"iface"`
	Way   Way    `json:"way"`
	Words string `json:"words"`          // arguments; "nothing": packets pass unchanged
	Seed  uint64 `json:"seed,omitempty"` // seed from Words, or chosen at random
	// Seen counts the packets that arrived since the impairment was set, Passed counts those that
	// left. Inside is the number of packets in transit, and Waiting is how many of these are in the
	// rate's queue. Seen + Duplicated = Passed + Lost + QueueDropped + Overflowed + Inside, always.
	Seen         uint64 `json:"seen"`
	SeenBytes    uint64 `json:"seen_bytes"`
	Passed       uint64 `json:"passed"`
	PassedBytes  uint64 `json:"passed_bytes"`
	Lost         uint64 `json:"lost"`
	QueueDropped uint64 `json:"queue_dropped"` // dropped by the rate's queue
	Overflowed   uint64 `json:"overflowed"`    // dropped: too many packets in transit
	Duplicated   uint64 `json:"duplicated"`
	Corrupted    uint64 `json:"corrupted"`
	Truncated    uint64 `json:"truncated"`
	Reordered    uint64 `json:"reordered"`
	Delayed      uint64 `json:"delayed"` // delayed packets
	Marked       uint64 `json:"marked"`  // packets marked CE by CoDel or the policer
	Inside       int    `json:"inside"`
	Waiting      int    `json:"waiting"`
}
