class Odd(Topo):
    def build(self, size):
        self.addHost('a')
        self.addHost('a')
        self.addHost('alone')
        self.addHost(name='näme')
        self.addHost('a-name-that-is-much-longer-than-the-name-of-any-file-may-be-in-here')
        self.addHost(unknown())
        self.addHost('b', ip='10.0.0.300')
        self.addHost('c', ip='127.0.0.1')
        self.addLink('a', 'b', bw=somewhere.rate, delay='quick')
        self.addLink('a', 'näme')
        self.addLink('a', 'a')
        self.addLink('a', 'aa')
        self.addLink('a')
        self.addLink(node1='b', node2='c')
        x = yield 5
        for i in range(size):
            self.addHost('never%d' % i)
        self.addNAT()
        self.addLink('c', 'a-name-that-is-much-longer-than-the-name-of-any-file-may-be-in-here')
        y = 1 / 0
        self.addLink('a', 'c')
