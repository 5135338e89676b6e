package rip

// Refusal is the reason for rejecting a message or an entry.
type Refusal uint8

// Accepted means that the message was accepted. The other reasons reject messages; those from
// RefusedFamily on reject single entries.
const (
	Accepted Refusal = iota
	RefusedInterface
	RefusedOwn
	RefusedNotNeighbor
	RefusedOffLink
	RefusedTooManyNeighbors
	RefusedForm
	RefusedCommand
	RefusedPort
	RefusedHopLimit
	RefusedVersion
	RefusedMustBeZero
	RefusedNoAuth
	RefusedAuthUnexpected
	RefusedAuthType
	RefusedPassword
	RefusedKeyID
	RefusedTrailer
	RefusedDigest
	RefusedSequence
	RefusedBusy
	RefusedSilent

	RefusedFamily
	RefusedMask
	RefusedMartian
	RefusedMetric
	RefusedNextHop
	RefusedTableFull

	numRefusals
)

var refusalNames = [numRefusals]string{
	Accepted:                "accepted",
	RefusedInterface:        "interface is down or does not listen",
	RefusedOwn:              "from this node",
	RefusedNotNeighbor:      "not from a neighbor",
	RefusedOffLink:          "from an address that is not on the link",
	RefusedTooManyNeighbors: "too many neighbors",
	RefusedForm:             "malformed",
	RefusedCommand:          "unknown command",
	RefusedPort:             "response not from RIP's port",
	RefusedHopLimit:         "hop limit below 255",
	RefusedVersion:          "version not accepted here",
	RefusedMustBeZero:       "nonzero must-be-zero field in version 1",
	RefusedNoAuth:           "authentication missing",
	RefusedAuthUnexpected:   "authentication not expected",
	RefusedAuthType:         "wrong authentication type",
	RefusedPassword:         "wrong password",
	RefusedKeyID:            "unknown key id",
	RefusedTrailer:          "authentication trailer malformed",
	RefusedDigest:           "wrong key",
	RefusedSequence:         "sequence number decreased",
	RefusedBusy:             "too many requests at once",
	RefusedSilent:           "request on a link where RIP sends nothing",
	RefusedFamily:           "entry of another address family",
	RefusedMask:             "entry with an invalid mask or prefix length",
	RefusedMartian:          "entry for a martian prefix",
	RefusedMetric:           "entry with a metric outside 1 to 16",
	RefusedNextHop:          "entry with this node's address as next hop",
	RefusedTableFull:        "routing table full",
}

// String describes the reason in a few words.
func (r Refusal) String() string {
	if r >= numRefusals {
		return "unknown"
	}
	return refusalNames[r]
}

// Refused is the number of refusals for one reason.
type Refused struct {
	Reason Refusal
	Count  uint64
}
