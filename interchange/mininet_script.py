#!/usr/bin/env python3
"""The network NETWORK for mininet. As root: python3 THIS-FILE [PROGRAM]

PROGRAM is tidepool's program; the default is tidepool on the PATH.
"""
import os
import shutil
import subprocess
import sys
import tempfile

try:
    from mininet.cli import CLI
    from mininet.net import Mininet
    from mininet.node import OVSBridge
    from mininet.topo import Topo
except ImportError as error:
    sys.exit('%s: install mininet (Debian: apt install mininet), and use /usr/bin/python3' % error)

# The lines of each node's .lnx file.
FILES = {
# FILES
}


class Network(Topo):
    def build(self, **_opts):
        # LINKS


topos = {'TOPO': Network}


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else 'tidepool'
    program = shutil.which(wanted)
    if not program:
        sys.exit('no program %s: python3 %s PROGRAM' % (wanted, sys.argv[0]))
    program = os.path.abspath(program)
    net = Mininet(topo=Network(), switch=OVSBridge, controller=None)
    running = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            net.start()
            for name, lines in FILES.items():
                base = os.path.join(folder, name)
                with open(base + '.lnx', 'w') as file:
                    file.writelines(lines)
                with open(base + '.log', 'w') as log:
                    running.append(net[name].popen(
                        [program, 'run', base + '.lnx', '--daemon', '--socket', base + '.sock'],
                        stdout=log, stderr=log))
            print('A command at a node: NAME %s ctl %s/NAME.sock routes' % (program, folder))
            CLI(net)
        finally:
            for process in running:
                process.terminate()
            for process in running:
                try:
                    process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    process.kill()
            net.stop()


if __name__ == '__main__':
    main()
