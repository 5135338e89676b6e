"""Send COUNT random and malformed packets into a TUN device.

    python3 fuzz.py DEVICE HOST SEED COUNT

scapy makes half of them: fields are random, and lengths and checksums right unless they
are random too. The other half are the same with some bytes changed, or truncated. The
last line prints the number of packets and the packets a second.
"""
import logging
import random
import socket
import sys
import time

logging.getLogger("scapy").setLevel(logging.CRITICAL)
from scapy.all import (  # noqa: E402
    ICMP, IP, TCP, UDP, IPOption_LSRR, IPOption_RR, IPOption_Timestamp, RandBin, RandByte,
    RandInt, RandNum, RandShort, Raw, fuzz)

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


def changed(packet):
    """Return the packet with a few bytes changed, sometimes truncated."""
    p = bytearray(packet)
    for _ in range(random.randrange(1, 6)):
        p[random.randrange(len(p))] = random.randrange(256)
    if random.randrange(4) == 0:
        del p[random.randrange(1, len(p) + 1):]
    return bytes(p)


def main():
    out = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
    to = (device, 0x0800)
    start, sent, refused = time.time(), 0, 0
    molds = []
    while sent < count:
        if sent % 2000 == 0:
            molds = [m() for m in MOLDS]
        try:
            packet = bytes(molds[sent // 2 % len(molds)])[:1400]
        except Exception:  # scapy drew a value that it cannot encode
            refused += 1
            molds = [m() for m in MOLDS]
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
    took = time.time() - start
    print(f"{sent} packets, {sent / max(took, 1e-9):.0f} a second; {refused} not drawn")


main()
