package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// Every network of nets/ comes up, and every node reaches every other node. In a network with NATs,
// every node reaches the server S, which is not behind a NAT.
func TestEveryNetworkConverges(t *testing.T) {
	testenv.NeedLong(t) // starts processes for each router of twenty networks
	var folders []string
	require.NoError(t, filepath.WalkDir(Path("nets"),
		func(path string, entry os.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			if files, _ := filepath.Glob(filepath.Join(path, "*.lnx")); len(files) > 0 {
				folder, err := filepath.Rel(Path(), path)
				folders = append(folders, folder)
				return err
			}
			return nil
		}))
	require.GreaterOrEqual(t, len(folders), 10)
	for _, folder := range folders {
		t.Run(filepath.ToSlash(folder), func(t *testing.T) {
			t.Parallel()
			net := CopyNetwork(t, folder).StartAll()
			names := net.Names()
			targets, hidden := names, strings.HasPrefix(filepath.Base(folder), "nat-")
			if hidden {
				targets = []string{"S"}
			}
			for _, from := range names {
				for _, to := range targets {
					for _, addr := range net.Node(to).Addrs() {
						net.Node(from).AwaitRoute(addr)
					}
				}
			}
			// A route here does not mean that every router on the path has one.
			for _, from := range names {
				for _, to := range targets {
					reach(t, net.Node(from), net.Node(to))
				}
			}
			first, last := net.Node(names[0]), net.Node(targets[len(targets)-1])
			right := startTransfer(t, first, last, megabyte, 9000)
			if !hidden {
				startTransfer(t, last, first, megabyte, 9001).done(patience)
			}
			right.done(patience)
		})
	}
}

// reach pings each address until an answer arrives.
func reach(t *testing.T, from, to *Node) {
	t.Helper()
	for _, addr := range to.Addrs() {
		from.Eventually(Soon, "answer from "+addr.String(), func() bool {
			out, _ := from.Do("ping -c 1 %s", addr)
			return has(out, "1 received")
		})
	}
}

func TestTestPackets(t *testing.T) {
	t.Parallel()
	a, _, c := line(t)
	mark := c.Mark()
	a.MustDo("send %s hello,  neighbor", c.Addr())
	got := c.Await(mark, Soon, `^Received test packet: .*`)
	// The packet starts with TTL 16, and one router is on the path.
	assert.Equal(t, "Received test packet: Src: "+a.Addr().String()+", Dst: "+c.Addr().String()+
		", TTL: 15, Data: hello,  neighbor", got[0])

	t.Log("# to itself")
	mark = a.Mark()
	a.MustDo("send %s me", a.Addr())
	a.Await(mark, Soon, `^Received test packet: Src: .* TTL: 16, Data: me$`)

	t.Log("# control characters for the terminal are escaped")
	mark = c.Mark()
	a.MustDo("send %s \x1b[31mred\x07", c.Addr())
	got = c.Await(mark, Soon, `^Received test packet: .*red`)
	assert.NotContains(t, got[0], "\x1b")
	assert.NotContains(t, got[0], "\x07")
}

func TestTestPacketsInTheOldGrammar(t *testing.T) {
	t.Parallel()
	a, _, c := line(t, "nets", "old", "a-b-c")
	mark := c.Mark()
	a.MustDo("send %s 0 old words", c.Addr())
	c.Await(mark, Soon, `^Received test packet: Src: 192.168.0.1, Dst: 192.168.0.4, TTL: 15, `+
		`Data: old words$`)
	fails(t, a, Soon, "send %s words", c.Addr())
}

func TestPingAndTraceroute(t *testing.T) {
	t.Parallel()
	a, b, c := line(t)
	out := a.MustDo("ping -c 3 -i 0.01 %s", c.Addr())
	assert.True(t, has(out, "PING "+c.Addr().String()), "%q", out)
	assert.True(t, has(out, "64 bytes from "+c.Addr().String()+": icmp_seq=1 ttl=63 time="), "%q", out)
	assert.True(t, has(out, "3 packets transmitted, 3 received, 0% packet loss"), "%q", out)
	assert.True(t, has(out, "rtt min/avg/max/mdev = "), "%q", out)

	out = a.MustDo("traceroute %s", c.Addr())
	require.Len(t, out, 3, "%q", out)
	assert.Regexp(t, `^ 1  `+b.Addr().String()+` `, out[1])
	assert.Regexp(t, `^ 2  `+c.Addr().String()+` `, out[2])

	for _, how := range []string{"-I", "-T", "--mtu", "-N 1 -q 2 -p 40000"} {
		out = a.MustDo("traceroute -n %s %s", how, c.Addr())
		require.Len(t, out, 3, "%s: %q", how, out)
		assert.Regexp(t, `^ 2  `+c.Addr().String()+`  `, out[2])
	}
	out = a.MustDo("ping -q -c 20 -f -s 65507 %s", c.Addr())
	assert.True(t, has(out, "20 packets transmitted, 20 received, 0% packet loss"), "%q", out)
	out, _ = a.Do("ping -c 1 -t 1 %s", c.Addr())
	assert.True(t, has(out, "From "+b.Addr().String()+" icmp_seq=1 Time to live exceeded"), "%q", out)
}

func TestDatagramsBetweenShells(t *testing.T) {
	t.Parallel()
	a, _, c := line(t)
	c.MustDo("udp listen 9000")
	mark, back := c.Mark(), a.Mark()
	a.MustDo("udp send %s 9000 a  question", c.Addr())
	c.Await(mark, Soon, `^Received 11 bytes on socket 0 from .*: a  question$`)
	c.MustDo("s 0 an answer")
	a.Await(back, Soon, `^Received 9 bytes on socket 0 from .*:9000: an answer$`)
	c.MustDo("close 0")
	mark = a.Mark()
	a.MustDo("udp send %s 9000 anybody", c.Addr())
	a.Await(mark, Soon, `^Socket 0 .*: connection refused$`)
}

// With `lossyforward 100`, a router drops and counts all packets.
func TestLossyForwardDropsAndCounts(t *testing.T) {
	t.Parallel()
	a, b, c := line(t)
	out := b.MustDo("lossyforward 100")
	assert.True(t, has(out, "100%"), "%q", out)
	const packets = 50
	mark := c.Mark()
	for range packets {
		a.MustDo("send %s lost", c.Addr())
	}
	b.Eventually(Soon, "50 counted drops", func() bool {
		return b.Dropped()["lossy forward"] == packets
	})
	assert.True(t, has(b.MustDo("interfaces -s"), "lossy forward 50"))
	c.Fence()
	assert.Empty(t, lines(c.Lines(mark), "Received test packet"))

	t.Log("# half of the packets, given as a fraction")
	out = b.MustDo("drop 0.5")
	assert.True(t, has(out, "50%"), "%q", out)
	assert.True(t, has(b.MustDo("lossyforward"), "50%"))
	mark = c.Mark()
	const many = 200
	for range many {
		a.Command("send %s perhaps", c.Addr())
	}
	a.MustDo("send %s end", b.Addr()) // this packet follows the others on the same link
	b.Eventually(Soon, "packet sent after the others", func() bool {
		return has(b.Lines(0), "Data: end")
	})
	c.Eventually(Soon, "every packet dropped or delivered", func() bool {
		dropped := int(b.Dropped()["lossy forward"]) - packets
		return dropped+len(lines(c.Lines(mark), "Data: perhaps")) == many
	})
	assert.InDelta(t, many/2, len(lines(c.Lines(mark), "Data: perhaps")), 45,
		"six standard deviations")

	t.Log("# no loss any more")
	b.MustDo("lossy 0")
	a.MustDo("ping -c 2 -i 0.01 %s", c.Addr())
}

// The loss can be set for a single interface. It never affects packets that the router itself
// sends.
func TestLossOnOneInterface(t *testing.T) {
	t.Parallel()
	a, b, c := line(t)
	b.MustDo("lossyforward 100 if0")
	fails(t, a, Soon, "ping -c 1 -i 0.01 %s", c.Addr())
	a.MustDo("ping -c 2 -i 0.01 %s", b.Addr())
	fails(t, b, Soon, "lossyforward 10 if7")
	fails(t, b, Soon, "lossyforward 101")
	fails(t, b, Soon, "lossy 2")
}

// An interface that is down drops incoming and outgoing packets and counts them.
func TestDownInterfaceDrops(t *testing.T) {
	t.Parallel()
	a, b, c := line(t)
	mark := b.Mark()
	b.MustDo("down if0")
	assert.True(t, has(b.MustDo("interfaces"), "DOWN"))
	a.MustDo("send %s unheard", b.Addr())
	b.Eventually(Soon, "counted drop", func() bool { return b.Dropped()["interface down"] > 0 })
	b.Fence()
	assert.Empty(t, lines(b.Lines(mark), "unheard"))
	complaint := fails(t, b, Soon, "send %s no", a.Addr())
	assert.Regexp(t, "down|no route", complaint)
	fails(t, a, Soon, "ping -c 1 -i 0.01 %s", c.Addr())

	b.MustDo("up 0")
	a.MustDo("ping -c 1 %s", c.Addr())
	fails(t, b, Soon, "down if9")
	fails(t, b, Soon, "up 7")
}

// lines returns the lines that contain a text.
func lines(all []string, text string) []string {
	var found []string
	for _, l := range all {
		if strings.Contains(l, text) {
			found = append(found, l)
		}
	}
	return found
}
