package ip

// DropReason is why a packet was dropped. Errors of the network are counted by reason and never
// returned as Go errors. The shell, the counters and captures show the reason's name.
type DropReason uint8

// These are the reasons, in the order in which packets are checked.
const (
	DropNone            DropReason = iota // the packet was not dropped
	DropShort                             // shorter than a header
	DropVersion                           // neither IPv4 nor IPv6
	DropHeaderLength                      // IHL below 5 or beyond the packet
	DropTotalLength                       // total length below the header or beyond the packet
	DropHeaderChecksum                    // wrong header checksum (RFC 791)
	DropMartian                           // an address is invalid in this place (RFC 1812 §5.3.7)
	DropOwnSource                         // another host used an address of this node as source
	DropReversePath                       // reverse path filter (RFC 3704 §2)
	DropOption                            // an IP option is malformed, or unknown and not skippable
	DropSourceRoute                       // a source route or routing header, which is refused
	DropExtension                         // an IPv6 extension header is malformed or misplaced
	DropExtensionLimit                    // too many extension headers, options or padding
	DropJumbo                             // longer than 65,575 bytes (RFC 2675), which is refused
	DropNoNextHeader                      // nothing follows the packet's headers (RFC 8200 §4.7)
	DropGroup                             // multicast group without a local member
	DropTTL                               // the TTL expired at this node
	DropNoRoute                           // no route matches the destination
	DropBlackhole                         // the route is a blackhole
	DropProhibited                        // the route has the kind prohibit
	DropNotForUs                          // a host received another host's packet
	DropScope                             // the link-local source must stay on its link
	DropInterfaceDown                     // the interface is down
	DropLossy                             // dropped by lossyforward
	DropQueueFull                         // the link's queue is full
	DropTooBig                            // longer than the link's MTU
	DropFragmentEmpty                     // the fragment has no data
	DropFragmentLength                    // length not a multiple of 8, and not the last one
	DropFragmentTooLong                   // ends beyond 65,535 bytes: the ping of death
	DropFragmentTiny                      // the first fragment lacks some headers (RFC 7112 §5)
	DropFragmentOverlap                   // a datagram with overlapping fragments (RFC 5722 §4)
	DropFragmentEnd                       // a datagram whose fragments give two lengths
	DropFragmentECN                       // conflicting ECN fields (RFC 3168 §5.3)
	DropFragmentCount                     // a datagram with too many fragments
	DropFragmentEvicted                   // a datagram that was evicted to make room
	DropFragmentTimeout                   // a datagram that was not complete in time
	DropProtocol                          // the node has no handler for the protocol
	DropTCPChecksum                       // wrong TCP checksum
	DropTCPHeader                         // TCP header too short, or invalid data offset
	DropUDPHeader                         // UDP header too short, or invalid length
	DropUDPChecksum                       // wrong UDP checksum
	DropUDPNoChecksum                     // IPv6 without a UDP checksum (RFC 8200 §8.1)
	DropUDPPort                           // no UDP socket accepts the datagram
	DropUDPFull                           // the UDP socket's receive buffer is full
	DropICMPRate                          // an ICMP error of this node exceeded the rate limit
	DropICMP                              // ICMP message too short, or wrong checksum
	DropICMPMTU                           // packet too big with an MTU below 1280 (RFC 8201 §4)
	DropNDHopLimit                        // neighbor discovery from beyond the link (RFC 4861 §3.1)
	DropND                                // malformed or misaddressed neighbor discovery
	DropNDFragment                        // neighbor discovery in fragments (RFC 6980 §5)
	DropMLDAlert                          // MLD without a router alert (RFC 3810 §6.2)
	DropNDFlood                           // more prefixes or routers than the node remembers
	DropRIP                               // malformed RIP message
	DropUnknownNeighbor                   // the sender is not a neighbor on the interface
	DropNATUnmapped                       // the NAT has no mapping for a packet from outside
	DropNATFiltered                       // the NAT's filter does not accept the packet's source
	DropNATFull                           // the NAT's table is full, or all ports are in use
	DropNATHostFull                       // the inside host has too many sessions at the NAT
	DropNATProtocol                       // protocol or header that the NAT cannot translate

	lastDropReason = DropNATProtocol
)

// NumDropReasons is the number of reasons, including DropNone.
const NumDropReasons = int(lastDropReason) + 1

// Drops counts packets by DropReason.
type Drops [NumDropReasons]uint64

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
	DropExtension:       "bad extension header",
	DropExtensionLimit:  "excessive extension headers",
	DropJumbo:           "jumbogram",
	DropNoNextHeader:    "no next header",
	DropGroup:           "not in group",
	DropTTL:             "ttl exceeded",
	DropNoRoute:         "no route",
	DropBlackhole:       "blackhole route",
	DropProhibited:      "prohibited",
	DropNotForUs:        "not for us",
	DropScope:           "beyond scope of source",
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
	DropUDPNoChecksum:   "no udp checksum",
	DropUDPPort:         "no udp socket",
	DropUDPFull:         "udp receive buffer full",
	DropICMPRate:        "icmp rate limit",
	DropICMP:            "bad icmp message",
	DropICMPMTU:         "packet too big below 1280",
	DropNDHopLimit:      "neighbor discovery from off-link",
	DropND:              "bad neighbor discovery",
	DropNDFragment:      "neighbor discovery in fragments",
	DropMLDAlert:        "mld without router alert",
	DropNDFlood:         "router advertisement flood",
	DropRIP:             "bad rip message",
	DropUnknownNeighbor: "unknown neighbor",
	DropNATUnmapped:     "no nat mapping",
	DropNATFiltered:     "nat filter",
	DropNATFull:         "nat table full",
	DropNATHostFull:     "nat host limit",
	DropNATProtocol:     "not translatable by nat",
}

// String returns the name of the reason.
func (d DropReason) String() string {
	if int(d) >= NumDropReasons {
		return "unknown reason"
	}
	return dropNames[d]
}
