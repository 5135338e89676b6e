"""Send IPv6 packets with extension headers and fragments into a TUN device.

    python3 extensions.py DEVICE SOURCE HOST

Each chain of headers comes with an echo and with a datagram to port 7, whole and in fragments. The
last line prints the number of echoes, which is that of the datagrams.
"""
import logging
import socket
import sys

logging.getLogger("scapy").setLevel(logging.CRITICAL)
from scapy.all import (  # noqa: E402
    UDP, ICMPv6EchoRequest, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, PadN,
    Raw, fragment6)

device, source, host = sys.argv[1:]
HOPS = IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 4)])
DESTINATION = IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)])
MTU = 1280


def headers(*chain):
    packet = IPv6(src=source, dst=host)
    for header in chain:
        packet = packet / header
    return packet


def main():
    out = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
    echoes = 0
    for before, behind in ([], []), ([HOPS], []), ([], [DESTINATION]), ([HOPS], [DESTINATION]):
        for length in 8, 3000:
            cut = [IPv6ExtHdrFragment(id=100 + echoes)] if length > MTU else []
            for upper in (ICMPv6EchoRequest(id=7, seq=echoes), UDP(sport=7000 + echoes, dport=7)):
                packet = headers(*before, *cut, *behind) / upper / Raw(bytes(length))
                for piece in fragment6(packet, MTU) if cut else [packet]:
                    out.sendto(bytes(piece), (device, 0x86DD))
                if cut:
                    cut[0].id += 1000
            echoes += 1
    print(echoes)


main()
