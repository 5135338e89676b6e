"""Send IPv6 SYNs from random addresses into a TUN device, until COUNT are sent.

    python3 flood.py DEVICE HOST PORT COUNT
"""
import logging
import random
import socket
import struct
import sys
import time

logging.getLogger("scapy").setLevel(logging.CRITICAL)
from scapy.all import TCP, IPv6  # noqa: E402

device, host, port, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
out = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
packet = bytearray(bytes(IPv6(src="2001:db8::ffff:0:ffff", dst=host) / TCP(
    sport=1024, dport=port, flags="S", seq=0xFFFF)))
for _ in range(count):
    # A 16-bit word and its complement add up to the same sum, so the checksum stays right.
    a, b, c = random.randrange(1 << 16), random.randrange(1 << 16), random.randrange(1 << 16)
    packet[16:24] = struct.pack("!HHHH", a, a ^ 0xFFFF, b, b ^ 0xFFFF)
    packet[44:48] = struct.pack("!HH", c, c ^ 0xFFFF)
    out.sendto(packet, (device, 0x86DD))
    time.sleep(50e-6)
