#!/usr/bin/env python3
from mininet.topo import Topo
from mininet.net import Mininet

"""
class NotRead: this is text
"""

class Star(Topo):
    """Hosts around one switch."""

    RATE = 10

    def build(self, hosts=2,
              rate=1):
        hub = self.addSwitch('s1')
        for number in range(1, hosts + 1):
            leaf = self.addHost('leaf%d' % number, cpu=0.5 / hosts)
            self.addLink(leaf, hub, bw=rate, delay='5ms', jitter='1ms', loss=2,
                         max_queue_size=100, use_htb=True)


def main():
    net = Mininet(topo=Star(hosts=3, rate=2.5))
    net.start()
    net.pingAll()
    net.stop()


if __name__ == '__main__':
    main()
