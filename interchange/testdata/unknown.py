"""Values that only Python knows."""
import os
import random
import sys

from mininet.topo import Topo

BW = int(os.environ['BW'])


class Lab(Topo):
    def build(self, n=3):
        s1 = self.addSwitch('s1')
        wide = 20 if len(sys.argv) > 1 else 10
        for i in range(1, n + 1):
            h = self.addHost('h%d' % i)
            self.addLink(h, s1, bw=float(BW) / 2, delay='%dms' % int(random.uniform(1, 10)),
                         loss=i % 2, max_queue_size=len(os.listdir('.')) + 100)
        self.addLink('h1', 'h2', bw=-BW, delay='5' + str(os.environ['UNIT']))
        self.addLink('h2', 'h3', bw=min(wide, BW), delay=f'{BW}ms', loss=1)
        self.addHost('g%s' % os.getpid())
        for j in range(int(os.environ['MORE'])):
            self.addLink('h1', 'h3')
