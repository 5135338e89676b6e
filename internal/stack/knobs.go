package stack

import (
	"errors"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// ErrKnob is returned for a setting that is out of range.
var ErrKnob = errors.New("setting out of range")

// maxICMP is the upper limit of ICMP's rate and burst.
const maxICMP = 1_000_000

// Knobs are the settings that can change while a stack runs, except TCP's. Zero fields mean the
// defaults.
type Knobs struct {
	ICMP ICMPKnobs
	IP   IPKnobs
}

// ICMPKnobs configure what ICMP answers.
type ICMPKnobs struct {
	// Errors limits the rate of error messages (RFC 1812 §4.3.2.8).
	Errors icmp.Limit
	// NoErrors disables error messages to other nodes.
	NoErrors bool
	// NoEcho disables echo replies.
	NoEcho bool
	// EchoBroadcast enables replies to echo requests that were sent to a broadcast or multicast
	// address.
	EchoBroadcast bool
	// NoTimestamp disables timestamp replies.
	NoTimestamp bool
}

// IPKnobs configure which packets IP accepts.
type IPKnobs struct {
	// ReversePath is how the source of a packet is checked against the routes.
	ReversePath ReversePath
	// DirectedBroadcast makes a router forward broadcasts to networks that it is attached to. The
	// default is off (RFC 2644 §2).
	DirectedBroadcast bool
	// Reassembly limits the memory and time of incomplete datagrams.
	Reassembly ip.ReassemblyConfig
}

// ReversePath is a mode of the reverse path filter (RFC 3704 §2).
type ReversePath uint8

// These are the modes. Off is the default, because routes are often asymmetric. RIP keeps the first
// of several routes with equal cost, so in a ring the two directions can differ. While routes
// converge, there may be no route to a source. Strict drops packets in both cases, loose in the
// second case.
const (
	// ReverseOff accepts any source that is not a martian.
	ReverseOff ReversePath = iota
	// ReverseLoose requires a route to the source (RFC 3704 §2.4).
	ReverseLoose
	// ReverseStrict requires that this route uses the interface at which the packet arrived (RFC
	// 3704 §2.2).
	ReverseStrict
)

var reversePaths = [...]string{ReverseOff: "off", ReverseLoose: "loose", ReverseStrict: "strict"}

// String returns the mode's name.
func (r ReversePath) String() string { return reversePaths[r] }

// ParseReversePath returns the mode with that name. The empty name means off.
func ParseReversePath(name string) (ReversePath, bool) {
	for r, known := range reversePaths {
		if name == known || name == "" {
			return ReversePath(r), true
		}
	}
	return 0, false
}

// Knobs returns the current settings, with defaults in place of zeros.
func (s *Stack) Knobs() Knobs {
	k := s.knobs
	k.ICMP.Errors = k.ICMP.Errors.WithDefaults()
	k.IP.Reassembly = s.local.fragments.Config()
	return k
}

// SetKnobs changes all settings. An error changes none.
func (s *Stack) SetKnobs(k Knobs) error {
	if l := k.ICMP.Errors; l.Burst < 0 || l.Burst > maxICMP || l.Rate > maxICMP {
		return fmt.Errorf("%w: %d ICMP errors a second, %d at once: each must be at most %d",
			ErrKnob, l.Rate, l.Burst, maxICMP)
	}
	if int(k.IP.ReversePath) >= len(reversePaths) {
		return fmt.Errorf("%w: unknown reverse-path mode %d", ErrKnob, k.IP.ReversePath)
	}
	if err := s.local.fragments.Configure(k.IP.Reassembly); err != nil {
		return fmt.Errorf("%w: %w", ErrKnob, err)
	}
	s.knobs = k
	s.icmp.bucket.SetLimit(k.ICMP.Errors)
	s.routing.forget()
	return nil
}
