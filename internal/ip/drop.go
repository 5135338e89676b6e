package ip

// DropReason says why a packet went no further. What the network does wrong is
// counted under one of these names and never returned as an error: the shell,
// the counters and the capture show the name.
type DropReason uint8

// The reasons, in the order in which a packet can meet them.
const (
	DropNone            DropReason = iota // the packet lives
	DropShort                             // fewer bytes than a header
	DropVersion                           // not IPv4
	DropHeaderLength                      // IHL below 5 or beyond the packet
	DropTotalLength                       // total length below the header or beyond the packet
	DropHeaderChecksum                    // RFC 791's checksum is wrong
	DropMartian                           // an address that cannot be where it is (RFC 1812 §5.3.7)
	DropOwnSource                         // from outside with an address of our own as source
	DropReversePath                       // its source is not where the routes say (RFC 3704 §2)
	DropOption                            // an IP option is malformed
	DropSourceRoute                       // its sender chose its way, which is refused
	DropGroup                             // to a multicast group that nobody here is in
	DropTTL                               // the last hop that its time to live allowed was ours
	DropNoRoute                           // no prefix of the table holds the destination
	DropBlackhole                         // the route there says to drop it
	DropProhibited                        // the route there says that it is forbidden
	DropNotForUs                          // a host was given another's packet
	DropInterfaceDown                     // the interface is down
	DropLossy                             // lossyforward took it
	DropQueueFull                         // the link's queue had no room
	DropTooBig                            // longer than the link's MTU
	DropFragmentEmpty                     // a fragment without data
	DropFragmentLength                    // a fragment before the last that is no multiple of 8
	DropFragmentTooLong                   // a fragment that ends beyond 65,535: the ping of death
	DropFragmentTiny                      // a fragment that cuts a TCP header (RFC 1858 §3)
	DropFragmentOverlap                   // of a datagram with overlapping fragments (RFC 5722 §4)
	DropFragmentEnd                       // of a datagram with two ends
	DropFragmentECN                       // of a datagram with marks at odds (RFC 3168 §5.3)
	DropFragmentCount                     // of a datagram of too many fragments
	DropFragmentEvicted                   // of a datagram that had to make room for others
	DropFragmentTimeout                   // of a datagram that did not get whole in time
	DropProtocol                          // nobody here speaks its protocol
	DropTCPChecksum                       // TCP checksum is wrong
	DropTCPHeader                         // TCP header is short or its data offset lies
	DropUDPHeader                         // UDP header is short or its length lies
	DropUDPChecksum                       // UDP checksum is wrong
	DropUDPPort                           // no UDP socket listens for it
	DropUDPFull                           // its UDP socket's receive buffer is full
	DropICMPRate                          // an ICMP error of ours, one too many
	DropICMP                              // ICMP message is short or its checksum is wrong
	DropRIP                               // RIP message is malformed
	DropUnknownNeighbor                   // the sender is not a neighbour of the interface

	lastDropReason = DropUnknownNeighbor
)

// NumDropReasons is the number of reasons, DropNone included.
const NumDropReasons = int(lastDropReason) + 1

// Drops counts packets by reason; the index is the DropReason.
type Drops [NumDropReasons]uint64

// Total returns the number of packets dropped for any reason.
func (d *Drops) Total() uint64 {
	var total uint64
	for _, n := range d[DropNone+1:] {
		total += n
	}
	return total
}

var dropNames = [NumDropReasons]string{
	DropNone:            "none",
	DropShort:           "too short",
	DropVersion:         "wrong version",
	DropHeaderLength:    "bad header length",
	DropTotalLength:     "bad total length",
	DropHeaderChecksum:  "bad header checksum",
	DropMartian:         "martian address",
	DropOwnSource:       "own address as source",
	DropReversePath:     "no route back to source",
	DropOption:          "bad ip option",
	DropSourceRoute:     "source route",
	DropGroup:           "not in group",
	DropTTL:             "ttl exceeded",
	DropNoRoute:         "no route",
	DropBlackhole:       "blackhole route",
	DropProhibited:      "prohibited",
	DropNotForUs:        "not for us",
	DropInterfaceDown:   "interface down",
	DropLossy:           "lossy forward",
	DropQueueFull:       "queue full",
	DropTooBig:          "too big",
	DropFragmentEmpty:   "empty fragment",
	DropFragmentLength:  "fragment not a multiple of 8",
	DropFragmentTooLong: "oversized datagram",
	DropFragmentTiny:    "tiny fragment",
	DropFragmentOverlap: "overlapping fragments",
	DropFragmentEnd:     "inconsistent last fragment",
	DropFragmentECN:     "inconsistent fragment ecn",
	DropFragmentCount:   "too many fragments",
	DropFragmentEvicted: "reassembly memory full",
	DropFragmentTimeout: "reassembly timeout",
	DropProtocol:        "unknown protocol",
	DropTCPChecksum:     "bad tcp checksum",
	DropTCPHeader:       "bad tcp header",
	DropUDPHeader:       "bad udp header",
	DropUDPChecksum:     "bad udp checksum",
	DropUDPPort:         "no udp socket",
	DropUDPFull:         "udp receive buffer full",
	DropICMPRate:        "icmp rate limit",
	DropICMP:            "bad icmp message",
	DropRIP:             "bad rip message",
	DropUnknownNeighbor: "unknown neighbor",
}

// String returns the short lower-case name under which the drop is shown.
func (d DropReason) String() string {
	if int(d) >= NumDropReasons {
		return "unknown reason"
	}
	return dropNames[d]
}
