package drill

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Script is a parsed script.
type Script struct {
	name    string
	options []option
	setup   []command // commands that run before the host exists
	events  []event
}

// option is a line --name=value at the head.
type option struct {
	line        int
	name, value string
}

// event is an action of the script, or an action that it expects from the host.
type event struct {
	line int
	when timing
	act  action
}

// action is the effect of an event, by type.
type action interface {
	run(w *world, e *event) error
}

type timeKind uint8

const (
	absolute timeKind = iota
	relative          // to the end of the previous event
	anyTime           // *
)

// timing is an event's time: an instant or, for outgoing segments, a range.
type timing struct {
	kind     timeKind
	ranged   bool
	from, to time.Duration
}

// segment is a TCP segment that arrives or leaves.
type segment struct {
	outbound bool
	ecn      ecnMark
	ports    [2]uint16 // source and destination, zero when not given
	header   tcp.Header
	flags    string // as in the script
	length   int
	window   int // -1: not given
	urgent   int // -1: not given
	options  []byte
	anyOpts  bool // <...>
	hasTS    bool
	raw      string // as in the script
}

type ecnMark uint8

const (
	ecnUnchecked ecnMark = iota
	ecnNone
	ecnECT0
	ecnECT1
	ecnCE
	ecnECT01 // outbound only: either codepoint
)

// report is an ICMP message about one of the host's segments.
type report struct {
	kind string
	code string
	mtu  int
	seq  uint32 // of the quoted segment
}

// call is a system call.
type call struct {
	name   string
	args   []value
	end    time.Duration // of a call that blocks
	blocks bool
	result int64
	errno  string
}

// command is one shell command line, split into words.
type command struct {
	line  int
	words []string
}

// commands is a `…` block among the events.
type commands []command

// assertions is a %{ … }% block.
type assertions []assertion

type assertion struct {
	line int
	text string
	cond expr
	note expr // shown when the assertion fails; may be nil
}

type valueKind uint8

const (
	valEllipsis valueKind = iota
	valInt
	valWords // words joined by |
	valString
	valList   // […]
	valStruct // {name=…}
)

// value is an argument of a system call.
type value struct {
	kind   valueKind
	n      int64
	text   string
	words  []string
	list   []value
	fields map[string]value
}
