"""Send COUNT random and malformed packets of the family of HOST into a TUN device.

    python3 fuzz.py DEVICE HOST SEED COUNT

scapy makes half of them: fields are random, and lengths and checksums right unless they
are random too. The other half are the same with some bytes changed, or truncated. The
last line prints the number of packets and the packets a second. Standard error gets the same
every 2000 packets.
"""
import logging
import random
import socket
import sys
import time

logging.getLogger("scapy").setLevel(logging.CRITICAL)
from scapy.all import (  # noqa: E402
    ICMP, IP, TCP, UDP, HBHOptUnknown, ICMPv6DestUnreach, ICMPv6EchoRequest, ICMPv6MLQuery2,
    ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6ND_RS, ICMPv6NDOptMTU, ICMPv6NDOptPrefixInfo,
    ICMPv6PacketTooBig, ICMPv6ParamProblem, ICMPv6TimeExceeded, ICMPv6Unknown, IPOption_LSRR,
    IPOption_RR, IPOption_Timestamp, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, Jumbo, Pad1, PadN, RandBin, RandByte, RandInt, RandIP6,
    RandNum, RandShort, Raw, RouterAlert, fuzz)

device, host, seed, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
random.seed(seed)

DATA = Raw(RandBin(RandNum(0, 200)))
ANYWHERE = ["10.8.0.1", "10.0.0.2", "10.1.0.2", host, host, "10.2.0.255", "224.0.0.9",
            "255.255.255.255", "127.0.0.1", "10.8.0.2"]


def icmp(**fields):
    return ICMP(type=RandNum(0, 19), code=RandNum(0, 16), **fields)


def options():
    return [random.choice([
        IPOption_RR(pointer=RandByte(), length=RandByte(), routers=["10.8.0.1", host]),
        IPOption_LSRR(pointer=RandByte(), routers=["10.8.0.1", host]),
        IPOption_Timestamp(pointer=RandByte(), flg=RandNum(0, 15), timestamp=1),
    ])]


# Fields are drawn every time a packet is encoded.
MOLDS = [
    lambda: fuzz(IP(dst=host)) / fuzz(TCP()) / DATA,
    lambda: fuzz(IP(dst=host)) / fuzz(UDP()) / DATA,
    lambda: fuzz(IP(dst=host)) / icmp() / DATA,
    lambda: fuzz(IP()) / DATA,
    lambda: IP(dst=host) / fuzz(TCP(dport=80)) / DATA,
    lambda: IP(dst=host) / TCP(sport=RandShort(), dport=80, seq=RandInt(), ack=RandInt(),
                               flags=random.randrange(512)) / DATA,
    lambda: IP(dst=host) / UDP(sport=RandShort(), dport=random.choice([53, 54])) / DATA,
    lambda: IP(dst=host, ttl=RandByte(), tos=RandByte())
            / icmp(id=RandShort(), seq=RandShort()) / DATA,
    lambda: IP(dst=host) / ICMP(type=random.choice([3, 4, 5, 11, 12]), code=RandNum(0, 15))
            / IP(src=host, dst="10.8.0.2") / fuzz(TCP(sport=80)),
    lambda: IP(dst=host, flags=RandNum(0, 7), frag=RandNum(0, 8191), id=RandNum(0, 50)) / DATA,
    lambda: IP(dst=host, flags=1, frag=RandNum(0, 30), id=RandNum(0, 5)) / DATA,
    lambda: IP(dst=random.choice(ANYWHERE), src="10.8.0.2", proto=RandByte()) / DATA,
    lambda: IP(dst=random.choice(ANYWHERE), ttl=random.choice([1, 255]))
            / UDP(sport=520, dport=520) / DATA,
    lambda: IP(dst=host, options=options()) / icmp() / DATA,
    lambda: IP(dst=host, ihl=RandNum(0, 15), len=RandShort())
            / TCP(dport=80, dataofs=RandNum(0, 15)),
    lambda: IP(dst=host) / UDP(dport=53, len=RandShort()) / DATA,
]

ANYWHERE6 = [host, host, "fd0a:8::1", "fd0a:0::2", "fd0a:1::2", "fd0a:8::2", "fd0a:2::", "ff02::1",
             "ff02::2", "ff02::9", "ff02::16", "ff01::1", "fe80::1", "::1", "::", "::ffff:10.2.0.2"]
KERNEL6 = "fd0a:8::2"


def anywhere6():
    return random.choice(ANYWHERE6)


def options6():
    return [random.choice([
        HBHOptUnknown(otype=RandByte(), optlen=RandNum(0, 12), optdata=RandBin(RandNum(0, 12))),
        HBHOptUnknown(otype=RandByte(), optdata=RandBin(RandNum(0, 12))),
        RouterAlert(value=RandNum(0, 3)), Jumbo(jumboplen=RandInt()), Pad1(), PadN(optdata=bytes(4)),
    ]) for _ in range(random.randrange(4))]


def chain():
    """Return an IPv6 packet with up to four extension headers."""
    packet = IPv6(dst=host)
    for _ in range(random.randrange(5)):
        packet = packet / random.choice([
            IPv6ExtHdrHopByHop(options=options6()),
            IPv6ExtHdrDestOpt(options=options6()),
            IPv6ExtHdrRouting(type=RandNum(0, 4), segleft=RandNum(0, 3), addresses=[host]),
            IPv6ExtHdrFragment(offset=RandNum(0, 3), m=RandNum(0, 1), id=RandNum(0, 5)),
        ])
    return packet


def discovery6():
    message = random.choice([
        ICMPv6ND_RS(), ICMPv6ND_NS(tgt=anywhere6()), ICMPv6ND_NA(tgt=anywhere6(), S=RandNum(0, 1)),
        ICMPv6ND_RA(routerlifetime=RandShort()) / ICMPv6NDOptMTU(mtu=RandInt())
        / ICMPv6NDOptPrefixInfo(prefix=RandIP6(), prefixlen=RandByte(), validlifetime=RandInt()),
        ICMPv6MLQuery2(mrd=RandShort(), mladdr=anywhere6()),
    ])
    return (IPv6(dst=anywhere6(), src=random.choice(["fe80::66", "::", KERNEL6]),
                 hlim=random.choice([255, 255, 1, 64])) / message)


def error6():
    e = random.choice([
        ICMPv6DestUnreach(code=RandNum(0, 8)), ICMPv6PacketTooBig(mtu=RandNum(0, 3000)),
        ICMPv6TimeExceeded(code=RandNum(0, 2)), ICMPv6ParamProblem(code=RandNum(0, 4), ptr=RandByte()),
    ])
    return IPv6(dst=host) / e / IPv6(src=host, dst=KERNEL6) / fuzz(TCP(sport=80))


MOLDS6 = [
    lambda: fuzz(IPv6(dst=host)) / fuzz(TCP()) / DATA,
    lambda: fuzz(IPv6(dst=host)) / fuzz(UDP()) / DATA,
    lambda: fuzz(IPv6()) / DATA,
    lambda: IPv6(dst=host) / fuzz(TCP(dport=80)) / DATA,
    lambda: IPv6(dst=host) / TCP(sport=RandShort(), dport=80, seq=RandInt(), ack=RandInt(),
                                 flags=random.randrange(512)) / DATA,
    lambda: IPv6(dst=host) / UDP(sport=RandShort(), dport=random.choice([53, 54])) / DATA,
    lambda: IPv6(dst=host, hlim=RandByte(), tc=RandByte(), fl=RandNum(0, 0xFFFFF))
            / ICMPv6EchoRequest(id=RandShort(), seq=RandShort()) / DATA,
    lambda: IPv6(dst=anywhere6(), hlim=RandByte())
            / ICMPv6Unknown(type=RandByte(), code=RandByte()) / DATA,
    lambda: chain() / TCP(sport=RandShort(), dport=80, flags=random.randrange(512)) / DATA,
    lambda: chain() / ICMPv6EchoRequest(id=RandShort()) / DATA,
    lambda: chain() / DATA,
    lambda: IPv6(dst=host) / IPv6ExtHdrFragment(nh=RandByte(), offset=RandNum(0, 8191),
                                                m=RandNum(0, 1), id=RandNum(0, 50)) / DATA,
    lambda: IPv6(dst=host) / IPv6ExtHdrFragment(nh=17, offset=RandNum(0, 30), m=1,
                                                id=RandNum(0, 5)) / DATA,
    lambda: IPv6(dst=anywhere6(), src=anywhere6(), nh=RandByte()) / DATA,
    lambda: IPv6(dst=anywhere6(), src="fe80::66", hlim=random.choice([1, 255]))
            / UDP(sport=521, dport=521) / DATA,
    lambda: discovery6(),
    lambda: error6(),
    lambda: IPv6(dst=host, plen=RandShort()) / TCP(dport=80, dataofs=RandNum(0, 15)),
    lambda: IPv6(dst=host) / UDP(dport=53, len=RandShort()) / DATA,
]


def changed(packet):
    """Return the packet with a few bytes changed, sometimes truncated."""
    p = bytearray(packet)
    for _ in range(random.randrange(1, 6)):
        p[random.randrange(len(p))] = random.randrange(256)
    if random.randrange(4) == 0:
        del p[random.randrange(1, len(p) + 1):]
    return bytes(p)


def rate(sent, start):
    """Return how many packets were sent, as text."""
    return f"{sent} packets, {sent / max(time.time() - start, 1e-9):.0f} a second"


def main():
    out = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
    six = ":" in host
    to = (device, 0x86DD if six else 0x0800)
    kinds = MOLDS6 if six else MOLDS
    start, sent, refused = time.time(), 0, 0
    molds = []
    while sent < count:
        if sent % 2000 == 0:
            molds = [m() for m in kinds]
            print(rate(sent, start), file=sys.stderr, flush=True)
        try:
            packet = bytes(molds[sent // 2 % len(molds)])[:1400]
        except Exception:  # scapy drew a value that it cannot encode
            refused += 1
            molds = [m() for m in kinds]
            continue
        for p in (packet, changed(packet)):
            while True:
                try:
                    out.sendto(p, to)
                    break
                except OSError as e:
                    if e.errno != 105:  # the device's queue is full
                        raise
                    time.sleep(0.001)
            sent += 1
    print(f"{rate(sent, start)}; {refused} not drawn")


main()
