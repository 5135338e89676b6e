"""Send forty of each odd IPv6 packet into a TUN device, and count the answers.

    python3 odd.py DEVICE SOURCE ROUTER HOST

SOURCE is the kernel's address, ROUTER the first router's, and HOST has a TCP listener at port 80.
Two echoes after each kind of packet, the second when the first was answered, tell when all answers
have arrived: the host sends an echo reply before resets that are due at the same time. The last
line prints the numbers of answers as a JSON object.
"""
import json
import logging
import socket
import struct
import sys
import time

logging.getLogger("scapy").setLevel(logging.CRITICAL)
from scapy.all import (  # noqa: E402
    TCP, UDP, HBHOptUnknown, ICMPv6EchoRequest, ICMPv6MLQuery2, ICMPv6ND_NS, ICMPv6ND_RA,
    ICMPv6NDOptPrefixInfo, ICMPv6PacketTooBig, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, Jumbo, PadN, Raw, fragment6)

device, source, router, host = sys.argv[1:]
COUNT, BARRIER = 40, 0xBA44
ETH_P_IPV6 = 0x86DD
wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IPV6))
wire.bind((device, ETH_P_IPV6))
wire.settimeout(20)
wire.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE: answers wait there
ALL = "ff02::1"
port = 20000


def ip(dst=host, src=source, **fields):
    return IPv6(src=src, dst=dst, **fields)


def tcp(flags="S", dport=80, **fields):
    global port
    port += 1
    return TCP(sport=port, dport=dport, flags=flags, **fields)


def cut(packet, size=1280):
    cut.id = getattr(cut, "id", 0) + 1
    packet[IPv6ExtHdrFragment].id = cut.id
    return fragment6(packet, size)


def fragmented(upper, size):
    return cut(ip() / IPv6ExtHdrFragment() / upper, size)


def piece(offset, more, data, **fields):
    return ip(nh=44) / IPv6ExtHdrFragment(nh=17, offset=offset, m=more, **fields) / Raw(data)


def overlapping():
    overlapping.id = getattr(overlapping, "id", 10000) + 1
    return [piece(0, 1, bytes(64), id=overlapping.id), piece(4, 0, bytes(64), id=overlapping.id)]


def too_many_headers():
    packet = ip()
    for _ in range(12):
        packet = packet / IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(4))])
    return packet / tcp()


def echo(*headers, **fields):
    packet = ip(**fields)
    for h in headers:
        packet = packet / h
    return packet / ICMPv6EchoRequest(id=7, data=b"odd")


def option(kind):
    return IPv6ExtHdrDestOpt(options=[HBHOptUnknown(otype=kind, optdata=bytes(4))])


def too_big(mtu):
    return ip() / ICMPv6PacketTooBig(mtu=mtu) / ip(dst=source, src=host) / UDP(dport=9) / Raw(bytes(1200))


# A function for each kind: it returns a packet, or a list of them.
ODD = {
    "xmas": lambda: ip() / tcp("FPU"),
    "xmas, closed": lambda: ip() / tcp("FPU", 81),
    "null": lambda: ip() / tcp(0),
    "null, closed": lambda: ip() / tcp(0, 81),
    "fin": lambda: ip() / tcp("F"),
    "fin, closed": lambda: ip() / tcp("F", 81),
    "ack": lambda: ip() / tcp("A"),
    "rst, closed": lambda: ip() / tcp("R", 81),
    "syn+fin": lambda: ip() / tcp("SF"),
    "syn+rst": lambda: ip() / tcp("SR"),
    "all flags": lambda: ip() / tcp("FSRPAUEC"),
    "bad checksum": lambda: ip() / tcp(chksum=0x1234),
    "header longer than the packet": lambda: ip() / tcp(dataofs=15),
    "header shorter than a header": lambda: ip() / tcp(dataofs=1),
    "first fragment without the header": lambda:
        ip(nh=44) / IPv6ExtHdrFragment(nh=6, m=1, id=1) / Raw(bytes(16)),
    "no last fragment": lambda: fragmented(tcp(dport=81) / Raw(bytes(3000)), 1280)[:-1],
    "no first fragment": lambda: fragmented(tcp(dport=81) / Raw(bytes(3000)), 1280)[1:],
    "overlapping fragments": overlapping,
    "fragment not a multiple of 8": lambda: piece(0, 1, bytes(65), id=2),
    "fragment beyond 65535": lambda: piece(8191, 0, bytes(64), id=3),
    "atomic fragment, closed": lambda: ip() / IPv6ExtHdrFragment() / tcp("F", 81),
    "land": lambda: ip(src=host) / TCP(sport=80, dport=80, flags="S"),
    "from a group": lambda: ip(src="ff02::9") / tcp(),
    "from nobody": lambda: ip(src="::") / tcp(),
    "from loopback": lambda: ip(src="::1") / tcp(),
    "from a mapped address": lambda: ip(src="::ffff:10.0.0.1") / tcp(),
    "to a mapped address": lambda: ip(dst="::ffff:10.0.0.1") / tcp(),
    "from its link": lambda: ip(src="fe80::77") / tcp(),
    "datagrams in fragments, closed": lambda: fragmented(UDP(dport=54) / Raw(bytes(3000)), 1280),
    "datagram without a checksum": lambda: ip() / UDP(dport=54, chksum=0),
    "long echoes": lambda: fragmented(ICMPv6EchoRequest(id=7, data=bytes(8000)), 1400),
    "routing header of type 0": lambda: echo(IPv6ExtHdrRouting(type=0, segleft=1, addresses=[router])),
    "routing header that has ended": lambda: echo(
        IPv6ExtHdrRouting(type=0, segleft=0, addresses=[router])),
    "hop-by-hop options in the middle": lambda: echo(
        IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(4))]),
        IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))])),
    "option to skip": lambda: echo(option(0x1E)),
    "option to drop": lambda: echo(option(0x5E)),
    "option to report": lambda: echo(option(0x9E)),
    "too many headers": too_many_headers,
    "jumbogram": lambda: echo(IPv6ExtHdrHopByHop(options=[Jumbo(jumboplen=70000)])),
    "nothing follows": lambda: ip(nh=59),
    "unknown header": lambda: ip(nh=200) / Raw(bytes(8)),
    "packet too big below 1280": lambda: too_big(1279),
    "solicitation from off-link": lambda: ip(dst=router, hlim=254) / ICMPv6ND_NS(tgt=router),
    "advertisement from off-link": lambda: ip(dst=ALL, src="fe80::66", hlim=64)
        / ICMPv6ND_RA() / ICMPv6NDOptPrefixInfo(prefix="2001:db8:bad::", prefixlen=64),
    "solicitation in fragments": lambda: cut(
        ip(dst=router, hlim=255) / IPv6ExtHdrFragment() / ICMPv6ND_NS(tgt=router) / Raw(bytes(2000))),
    "query without an alert": lambda: ip(dst=ALL, src="fe80::66", hlim=1) / ICMPv6MLQuery2(),
}


def answers():
    """Count the answers until that of the second echo."""
    send(ip() / ICMPv6EchoRequest(id=BARRIER))
    count, echoes = 0, 1
    while True:
        b, (_, _, kind, *_) = wire.recvfrom(65536)
        if kind == socket.PACKET_OUTGOING or len(b) < 48:
            continue
        upper = b[6]
        if upper == 44:
            if struct.unpack("!H", b[42:44])[0] & ~7 == 0:
                count += 1  # the first fragment of an answer
        elif upper in (6, 17):
            count += 1
        elif upper == 58 and b[40] < 128:
            count += 1
        elif upper == 58 and b[40] == 129:
            if b[44:46] != struct.pack("!H", BARRIER):
                count += 1
            elif echoes == 2:
                return count
            else:
                send(ip() / ICMPv6EchoRequest(id=BARRIER))
                echoes = 2


def send(packet):
    wire.sendto(bytes(packet), (device, ETH_P_IPV6))


def main():
    counts = {}
    for name, kind in ODD.items():
        for _ in range(COUNT):
            packets = kind()
            for packet in packets if isinstance(packets, list) else [packets]:
                send(packet)
            time.sleep(0.004)  # errors are limited to a thousand a second
        try:
            counts[name] = answers()
        except TimeoutError:
            sys.exit(f"no answer to the echo after {name}; before: {counts}")
    print(json.dumps(counts))


main()
