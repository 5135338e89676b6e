package stack

import (
	"errors"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// ErrKnob is a knob that cannot be turned so.
var ErrKnob = errors.New("a knob out of its bounds")

// maxICMP bounds the limits of ICMP's errors.
const maxICMP = 1_000_000

// Knobs are what can be turned while a stack runs, beside TCP's. The zero Knobs are
// those of a good host or router.
type Knobs struct {
	ICMP ICMPKnobs
	IP   IPKnobs
}

// ICMPKnobs say what ICMP answers.
type ICMPKnobs struct {
	// Errors bounds the error messages that are sent (RFC 1812 §4.3.2.8).
	Errors icmp.Limit
	// NoErrors sends no error messages to other nodes.
	NoErrors bool
	// NoEcho leaves echo requests unanswered.
	NoEcho bool
	// EchoBroadcast answers those to all on a link, or to a group, as well.
	EchoBroadcast bool
	// NoTimestamp leaves timestamp requests unanswered.
	NoTimestamp bool
}

// IPKnobs say which packets IP takes.
type IPKnobs struct {
	// ReversePath is how the source of a packet is checked against the routes.
	ReversePath ReversePath
	// DirectedBroadcast has a router pass on what is for all on a link of its own
	// (RFC 2644 §2 has it off unless asked for).
	DirectedBroadcast bool
	// Reassembly bounds what is kept of datagrams that come in fragments.
	Reassembly ip.ReassemblyConfig
}

// ReversePath is how strict a node is about the way back to a packet's source
// (RFC 3704 §2).
type ReversePath uint8

// The modes. Off is the default, because the way back is often another one here: RIP
// chooses among equal costs by who spoke first, so that in a ring each direction may
// have its own way, and while routes converge a source may for a moment have none.
// Strict would cut off the former, loose lose packets of the latter.
const (
	// ReverseOff takes any source that is not a martian.
	ReverseOff ReversePath = iota
	// ReverseLoose wants a route to the source (RFC 3704 §2.4).
	ReverseLoose
	// ReverseStrict wants it to lead out where the packet came in (RFC 3704 §2.2).
	ReverseStrict
)

var reversePaths = [...]string{ReverseOff: "off", ReverseLoose: "loose", ReverseStrict: "strict"}

// String returns the mode's name.
func (r ReversePath) String() string { return reversePaths[r] }

// ParseReversePath returns the mode with that name; the empty one is off.
func ParseReversePath(name string) (ReversePath, bool) {
	for r, known := range reversePaths {
		if name == known || name == "" {
			return ReversePath(r), true
		}
	}
	return 0, false
}

// Knobs returns how the knobs stand, with defaults for zeros.
func (s *Stack) Knobs() Knobs {
	k := s.knobs
	k.ICMP.Errors = k.ICMP.Errors.WithDefaults()
	k.IP.Reassembly = s.local.fragments.Config()
	return k
}

// SetKnobs turns them.
func (s *Stack) SetKnobs(k Knobs) error {
	if l := k.ICMP.Errors; l.Burst < 0 || l.Burst > maxICMP || l.Rate > maxICMP {
		return fmt.Errorf("%w: %d ICMP errors a second, %d at once: want no more than %d",
			ErrKnob, l.Rate, l.Burst, maxICMP)
	}
	if int(k.IP.ReversePath) >= len(reversePaths) {
		return fmt.Errorf("%w: reverse path %d", ErrKnob, k.IP.ReversePath)
	}
	if err := s.local.fragments.Configure(k.IP.Reassembly); err != nil {
		return fmt.Errorf("%w: %w", ErrKnob, err)
	}
	s.knobs = k
	s.icmp.bucket.SetLimit(k.ICMP.Errors)
	s.routing.forget()
	return nil
}
