package node

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// both runs a test with each waiter, and thus with each kind of socket, and with an Exchange.
func both(t *testing.T, f func(t *testing.T, cfg Config)) {
	t.Helper()
	t.Run("best", func(t *testing.T) { f(t, Config{}) })
	t.Run("plain", func(t *testing.T) { f(t, Config{waiter: waitFed, Offload: "plain"}) })
	t.Run("exchange", func(t *testing.T) { f(t, Config{Exchange: new(link.Exchange)}) })
}

// reloadableNode starts a node whose file can be replaced.
func reloadableNode(t *testing.T, cfg Config, name string, text *string) *Node {
	t.Helper()
	file := testenv.ParseNode(t, name, *text)
	n := startFile(t, cfg, file)
	n.reloadable(file, func() (*lnx.Config, error) {
		return lnx.Parse(name+".lnx", []byte(*text))
	})
	return n
}

func reload(t *testing.T, n *Node) control.Reloaded {
	t.Helper()
	done, err := n.Reload(control.Reload{}, nil)
	require.NoError(t, err)
	return done
}

// flow writes to a connection and checks the data that arrives, until stop is called. more waits
// for more bytes.
func flow(t *testing.T, from, to *Conn) (more, stop func()) {
	t.Helper()
	over, ended := make(chan struct{}), make(chan error, 1)
	passed := make(chan int, 1)
	piece := bytes.Repeat([]byte("0123456789abcdef"), 1024)
	go func() {
		for {
			select {
			case <-over:
				_ = from.CloseWrite() // makes the reader check whether all data has arrived
				return
			default:
			}
			if _, err := from.Write(piece); err != nil {
				ended <- err
				return
			}
		}
	}()
	go func() {
		got := make([]byte, len(piece))
		for total := 0; ; total += len(got) {
			if _, err := io.ReadFull(to, got); err != nil {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				ended <- err
				return
			}
			if !bytes.Equal(got, piece) {
				ended <- errors.New("damaged")
				return
			}
			select {
			case passed <- total:
			default:
			}
		}
	}()
	more = func() {
		t.Helper()
		for range 20 {
			select {
			case <-passed:
			case err := <-ended:
				require.NoError(t, err)
				require.Fail(t, "the connection has ended")
			case <-time.After(time.Minute):
				require.Fail(t, "no more data arrives")
			}
		}
	}
	return more, func() {
		t.Helper()
		close(over)
		require.NoError(t, <-ended)
	}
}

// A transfer continues while a node is added, an MTU changes and a neighbor moves.
func TestTransferDuringLinkChanges(t *testing.T) {
	both(t, func(t *testing.T, cfg Config) {
		p := freePorts(t, 5)
		line := func(own, at, other, there int) string {
			return fmt.Sprintf("interface if0 10.0.0.%d/24 127.0.0.1:%d\n"+
				"neighbor 10.0.0.%d at 127.0.0.1:%d via if0\n", own, at, other, there)
		}
		textA, textB := line(1, p[0], 2, p[1]), line(2, p[1], 1, p[0])
		a, b := reloadableNode(t, cfg, "A", &textA), reloadableNode(t, cfg, "B", &textB)
		client, server := connect(t, a, b, "10.0.0.2:80")
		more, stop := flow(t, client, server)
		more()

		t.Log("# C is added beside A")
		link := "interface if1 10.1.0.%d/24 127.0.0.1:%d\nneighbor 10.1.0.%d at 127.0.0.1:%d via if1\n"
		textA += fmt.Sprintf(link, 1, p[2], 3, p[3])
		done := reload(t, a)
		assert.Equal(t, []string{
			fmt.Sprintf("interface if1 10.1.0.1/24 at 127.0.0.1:%d", p[2]),
			fmt.Sprintf("neighbor 10.1.0.3 at 127.0.0.1:%d via if1", p[3]),
		}, done.Changes)
		assert.Empty(t, done.Ended)
		c := start(t, cfg, "C", fmt.Sprintf(link, 3, p[3], 1, p[2]))
		near, far := connect(t, c, a, "10.1.0.1:81")
		moreC, stopC := flow(t, near, far)
		moreC()
		more()

		t.Log("# B's MTU changes")
		textB += "link if0 mtu 576\n"
		assert.Equal(t, []string{"interface if0: mtu 576, was 1400"}, reload(t, b).Changes)
		more()
		faces := testenv.Ask(t, b, control.Interfaces{})
		assert.Equal(t, 576, faces[0].MTU)

		t.Log("# B moves to another UDP port, and A follows")
		textB = strings.Replace(textB, fmt.Sprint(p[1]), fmt.Sprint(p[4]), 1)
		reload(t, b)
		textA = strings.Replace(textA, fmt.Sprint(p[1]), fmt.Sprint(p[4]), 1)
		assert.Equal(t, []string{fmt.Sprintf("neighbor 10.0.0.2 via if0: at 127.0.0.1:%d, was at "+
			"127.0.0.1:%d", p[4], p[1])}, reload(t, a).Changes)
		more()
		moreC()
		stop()
		stopC()

		t.Log("# C's link is removed, and its number is not reused")
		textA = line(1, p[0], 2, p[4])
		reload(t, a)
		faces = testenv.Ask(t, a, control.Interfaces{})
		require.Len(t, faces, 1)
		_, err := a.Do(t.Context(), control.SetLink{Iface: "1", Up: true})
		require.ErrorIs(t, err, control.ErrNoSuchInterface)
		_, err = a.TCP.Dial(t.Context(), netip.MustParseAddrPort("10.1.0.3:1"))
		require.ErrorIs(t, err, syscall.EHOSTUNREACH)
		textA += fmt.Sprintf(link, 1, p[2], 3, p[3])
		reload(t, a)
		connect(t, a, c, "10.1.0.3:82")
		faces = testenv.Ask(t, a, control.Interfaces{})
		assert.Equal(t, 1, faces[1].Index)
	})
}

// nodesWithTwoLinks starts two nodes with two links: if0 with 10.0.0.1 and 10.0.0.2, if1 with
// 10.1.0.1 and 10.1.0.2. The first one reloads its file from text.
func nodesWithTwoLinks(t *testing.T, text *string) (a, b *Node) {
	t.Helper()
	p := freePorts(t, 4)
	const two = "interface if0 10.0.0.%d/24 127.0.0.1:%d\nneighbor 10.0.0.%d at 127.0.0.1:%d via if0\n" +
		"interface if1 10.1.0.%d/24 127.0.0.1:%d\nneighbor 10.1.0.%d at 127.0.0.1:%d via if1\n"
	*text = fmt.Sprintf(two, 1, p[0], 2, p[1], 1, p[2], 2, p[3])
	return reloadableNode(t, Config{}, "A", text),
		start(t, Config{}, "B", fmt.Sprintf(two, 2, p[1], 1, p[0], 2, p[3], 1, p[2]))
}

// Removing an address closes its users with a clear error, and no others.
func TestRemovedAddressClosesItsUsers(t *testing.T) {
	var textA string
	a, b := nodesWithTwoLinks(t, &textA)
	stays, serverStays := connect(t, a, b, "10.0.0.2:80")
	goes, serverGoes := connect(t, a, b, "10.1.0.2:80")
	l, err := a.TCP.Listen(netip.MustParseAddrPort("10.1.0.1:90"), 0)
	require.NoError(t, err)
	u, err := a.Packets.Listen(netip.MustParseAddrPort("10.1.0.1:91"))
	require.NoError(t, err)

	textA = strings.Replace(textA, "if1 10.1.0.1/24", "if1 10.1.0.7/24", 1)
	try, err := a.Reload(control.Reload{Try: true}, nil)
	require.NoError(t, err)
	want := []string{
		fmt.Sprintf("tcp %v to 10.1.0.2:80", goes.LocalAddr()), "tcp 10.1.0.1:90, listening",
		"udp 10.1.0.1:91",
	}
	assert.ElementsMatch(t, want, try.Ended)
	_, err = goes.Write([]byte("it was only tried"))
	require.NoError(t, err)

	done := reload(t, a)
	assert.ElementsMatch(t, want, done.Ended)
	assert.Equal(t, []string{"interface if1: address 10.1.0.7/24, was 10.1.0.1/24"}, done.Changes)
	_, err = goes.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	require.ErrorContains(t, err, "local address removed")
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	_, _, err = u.ReadFromAddrPort(make([]byte, 1))
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	_, err = io.ReadAll(serverGoes)
	require.ErrorIs(t, err, syscall.ECONNRESET, "the peer gets a reset")
	_, err = stays.Write([]byte("still open"))
	require.NoError(t, err)
	_, err = io.ReadFull(serverStays, make([]byte, 10))
	require.NoError(t, err)
	routes := testenv.Ask(t, a, control.Routes{})
	assert.Len(t, routes, 2)
}

// Two links can swap their UDP addresses, because their sockets stay open and are exchanged.
func TestTwoLinksSwapUDPAddresses(t *testing.T) {
	both(t, func(t *testing.T, cfg Config) {
		p := freePorts(t, 4)
		const two = "interface if0 10.0.0.%d/24 127.0.0.1:%d\n" +
			"neighbor 10.0.0.%d at 127.0.0.1:%d via if0\n" +
			"interface if1 10.1.0.%d/24 127.0.0.1:%d\nneighbor 10.1.0.%d at 127.0.0.1:%d via if1\n" +
			"link if1 delay 1ms\n"
		textA := fmt.Sprintf(two, 1, p[0], 2, p[1], 1, p[2], 2, p[3])
		textB := fmt.Sprintf(two, 2, p[1], 1, p[0], 2, p[3], 1, p[2])
		a, b := reloadableNode(t, cfg, "A", &textA), reloadableNode(t, cfg, "B", &textB)
		client, server := connect(t, a, b, "10.1.0.2:80")
		more, stop := flow(t, client, server)
		more()
		for range 3 {
			p[0], p[2] = p[2], p[0]
			textA = fmt.Sprintf(two, 1, p[0], 2, p[1], 1, p[2], 2, p[3])
			textB = fmt.Sprintf(two, 2, p[1], 1, p[0], 2, p[3], 1, p[2])
			reload(t, a)
			reload(t, b)
			more()
		}
		stop()
		list := testenv.Ask(t, a, control.Impairments{Iface: "if1"})
		assert.Equal(t, "delay 1ms", list[0].Words, "the impairment stays with its link")
	})
}

// A link that cannot be opened changes nothing, and the error contains its position.
func TestFailedReloadChangesNothing(t *testing.T) {
	p := freePorts(t, 3)
	base := fmt.Sprintf("interface if0 10.0.0.1/24 127.0.0.1:%d\n"+
		"neighbor 10.0.0.2 at 127.0.0.1:%d via if0\n", p[0], p[1])
	text := base
	a := reloadableNode(t, Config{}, "A", &text)
	taken, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	text = strings.Replace(base, "/24", "/16", 1) + fmt.Sprintf("route 10.9.0.0/16 via 10.0.0.2\n"+
		"interface if2 10.2.0.1/24 127.0.0.1:%d\ninterface if1 10.1.0.1/24 %v\n", p[2],
		taken.LocalAddr())
	_, err = a.Reload(control.Reload{}, nil)
	var at *lnx.Error
	require.ErrorAs(t, err, &at)
	assert.Equal(t, 5, at.Line)
	require.ErrorContains(t, err, "address already in use")
	routes := testenv.Ask(t, a, control.Routes{})
	require.Len(t, routes, 1)
	assert.Equal(t, "10.0.0.0/24", routes[0].Prefix.String())
	free, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", p[2]))
	require.NoError(t, err, "the opened socket is closed again")
	require.NoError(t, free.Close())

	t.Log("# another component cannot apply the file: everything is undone")
	text = strings.Replace(base, "/24", "/16", 1)
	undone := false
	_, err = a.Reload(control.Reload{}, func(_, _ *lnx.Config) []Change {
		return []Change{
			{Text: "one", Do: func() error { return nil }, Undo: func() { undone = true }},
			{Text: "two", Do: func() error { return control.ErrPortInUse }},
		}
	})
	require.ErrorIs(t, err, control.ErrPortInUse)
	assert.True(t, undone)
	faces := testenv.Ask(t, a, control.Interfaces{})
	assert.Equal(t, "10.0.0.1/24", faces[0].Addr.String())
}

// RIP learns about a new router. Its routes stay while others are added. They disappear at once
// with its link.
func TestRIPFollowsLinks(t *testing.T) {
	for _, dialect := range []string{"rip", "rip2"} {
		t.Run(dialect, func(t *testing.T) {
			p := freePorts(t, 6)
			const ab = "interface if0 10.0.0.%[1]d/24 127.0.0.1:%[2]d\n" +
				"neighbor 10.0.0.%[3]d at 127.0.0.1:%[4]d via if0\n"
			const bc = "interface if1 10.1.0.%[1]d/24 127.0.0.1:%[2]d\n" +
				"neighbor 10.1.0.%[3]d at 127.0.0.1:%[4]d via if1\n"
			to := func(lines string, addrs ...string) string {
				lines += "routing " + dialect + "\n"
				for _, a := range addrs {
					lines += "rip advertise-to " + a + "\n"
				}
				return lines
			}
			textB := to(fmt.Sprintf(ab, 2, p[1], 1, p[0]), "10.0.0.1")
			a := start(t, Config{}, "A", to(fmt.Sprintf(ab, 1, p[0], 2, p[1]), "10.0.0.2")+
				fmt.Sprintf("interface if9 10.9.0.1/24 127.0.0.1:%d\n", p[4]))
			b := reloadableNode(t, Config{}, "B", &textB)
			awaitRoute(t, b, "10.9.0.0/24", true)

			more := to(fmt.Sprintf(ab, 2, p[1], 1, p[0])+fmt.Sprintf(bc, 2, p[2], 3, p[3]),
				"10.0.0.1", "10.1.0.3")
			before := textB
			textB = more
			reload(t, b)
			assert.True(t, hasRoute(t, b, "10.9.0.0/24"), "the learned route stays")
			awaitRoute(t, a, "10.1.0.0/24", true)
			c := start(t, Config{}, "C", to(fmt.Sprintf(bc, 3, p[3], 2, p[2]), "10.1.0.2")+
				fmt.Sprintf("interface if8 10.8.0.1/24 127.0.0.1:%d\n", p[5]))
			awaitRoute(t, a, "10.8.0.0/24", true)
			awaitRoute(t, c, "10.9.0.0/24", true)

			textB = before
			reload(t, b)
			awaitRoute(t, a, "10.8.0.0/24", false)
			awaitRoute(t, a, "10.1.0.0/24", false)
			awaitRoute(t, c, "10.9.0.0/24", false)
			assert.True(t, hasRoute(t, b, "10.9.0.0/24"))
		})
	}
}

func hasRoute(t *testing.T, n *Node, prefix string) bool {
	t.Helper()
	routes := testenv.Ask(t, n, control.Routes{})
	for _, r := range routes {
		if r.Prefix.String() == prefix {
			return true
		}
	}
	return false
}

// awaitRoute waits until a route appears or disappears. It waits for less time than a route takes
// to expire.
func awaitRoute(t *testing.T, n *Node, prefix string, there bool) {
	t.Helper()
	require.Eventually(t, func() bool { return hasRoute(t, n, prefix) == there }, 10*time.Second,
		5*time.Millisecond, "%s %v", prefix, there)
}
