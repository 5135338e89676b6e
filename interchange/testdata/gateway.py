class Gateway(Node):
    def config(self, **params):
        super(Gateway, self).config(**params)
        self.cmd('sysctl net.ipv4.ip_forward=1')


class Sites(Topo):
    def __init__(self, *args, **options):
        Topo.__init__(self, *args, **options)
        self.gates = []
        self.place(3)

    def place(self, count):
        for i in range(count):
            self.gates.append(self.addNode(f'gate{i}', cls=Gateway, ip=None))
        for i in range(count - 1):
            net = f"192.168.{i}"
            self.addLink(self.gates[i], self.gates[i + 1], cls=TCLink, bw=10,
                         params1={'ip': net + '.1/30'}, params2={'ip': net + '.2/30'})
        user = self.addHost('user', ip='172.16.5.9/24', defaultRoute='via 172.16.5.1')
        self.addLink('user', self.gates[0], params2={'ip': '172.16.5.1/24'})


class Other(Topo):
    def build(self):
        self.addLink('x', 'y')
