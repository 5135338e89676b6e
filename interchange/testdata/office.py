import sys
from mininet.net import Mininet

WIDE = dict(bw=100, delay=500)


def office():
    net = Mininet(controller=Controller, link=TCLink)
    net.addController('c0')
    desk = net.addHost('desk', ip='10.0.0.7', mac='00:00:00:00:00:07')
    store = net.addHost('store', ip='10.0.0.8/24')
    rack = net.addSwitch('rack')
    net.addLink(desk, rack, **WIDE)
    net.addLink(rack, net['store'], bw=20, enable_ecn=True, loss='some')
    net.start()
    try:
        print(f"first {desk.IP()}")
        desk.cmd('ping', store.IP())
    except Exception as problem:
        raise problem
    finally:
        net.stop()


if __name__ == '__main__':
    office()
