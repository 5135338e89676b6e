"""Be the multicast router of a TUN device until a report has a record of that type for GROUP.

    python3 mld.py DEVICE GROUP TYPE

It sends a general query of MLD version 2 now and then (RFC 3810 §7.1). Reports need a link-local
source, hop limit 1, a router alert and a valid checksum; others are errors. The last line prints
the number of records of the report.
"""
import logging
import socket
import sys

logging.getLogger("scapy").setLevel(logging.CRITICAL)
from scapy.all import (  # noqa: E402
    ICMPv6MLDMultAddrRec, ICMPv6MLQuery2, ICMPv6MLReport2, IPv6, IPv6ExtHdrHopByHop, RouterAlert,
    in6_chksum)

device, group, kind = sys.argv[1], sys.argv[2], int(sys.argv[3])
ETH_P_IPV6, GROUP_AT = 0x86DD, 48  # behind the headers of IPv6 and hop-by-hop options
wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IPV6))
wire.bind((device, ETH_P_IPV6))
wire.settimeout(0.5)
QUERY = bytes(IPv6(src="fe80::66", dst="ff02::1", hlim=1)
              / IPv6ExtHdrHopByHop(options=[RouterAlert(value=0)])
              / ICMPv6MLQuery2(mrd=100, QRV=2, QQIC=125))


def check(packet, b):
    if not packet.src.startswith("fe80:") or packet.hlim != 1 or packet.dst != "ff02::16":
        sys.exit(f"addresses or hop limit: {packet.summary()}")
    if not any(isinstance(o, RouterAlert) for o in packet[IPv6ExtHdrHopByHop].options):
        sys.exit("no router alert")
    if in6_chksum(58, packet, b[GROUP_AT:]) not in (0, 0xFFFF):
        sys.exit("wrong checksum")


def records_of(report):
    """Yield the records, of which scapy makes each the payload of the one before."""
    r = report.records[0]
    while isinstance(r, ICMPv6MLDMultAddrRec):
        yield r
        r = r.payload


while True:
    try:
        b, (_, _, direction, *_) = wire.recvfrom(65536)
    except TimeoutError:
        wire.sendto(QUERY, (device, ETH_P_IPV6))
        continue
    packet = IPv6(b)
    if direction == socket.PACKET_OUTGOING or ICMPv6MLReport2 not in packet or packet.src == "::":
        continue  # routers ignore reports without a source (RFC 3810 §7.4)
    check(packet, b)
    records = list(records_of(packet[ICMPv6MLReport2]))
    if any(r.dst == group and r.rtype == kind for r in records):
        print(len(records))
        break
