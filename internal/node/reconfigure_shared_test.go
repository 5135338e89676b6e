package node

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// passes sends a text from one end of a connection to the other.
func passes(t *testing.T, from, to *Conn) {
	t.Helper()
	text := []byte(strings.Repeat("tidepool ", 1000))
	_, err := from.Write(text)
	require.NoError(t, err)
	got := make([]byte, len(text))
	_, err = io.ReadFull(to, got)
	require.NoError(t, err)
	assert.Equal(t, text, got)
}

// Interfaces that share a UDP socket are added, deleted, changed, and moved to another port
// together. Traffic over the other interfaces continues.
func TestReloadWithASharedSocket(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg Config) {
		p := freePorts(t, 5)
		at := p[0] // UDP port of A's socket
		spoke := func(i int) string {
			return fmt.Sprintf("interface if%[1]d 10.%[1]d.0.1/24 127.0.0.1:%[2]d\n"+
				"neighbor 10.%[1]d.0.2 at 127.0.0.1:%[3]d via if%[1]d\n", i, at, p[i+1])
		}
		rim := func(i int) string {
			return fmt.Sprintf("interface if0 10.%d.0.2/24 127.0.0.1:%d\n"+
				"neighbor 10.%[1]d.0.1 at 127.0.0.1:%[3]d via if0\n", i, p[i+1], at)
		}
		const shared = "socket shared\nrouting rip\n"
		text := shared + spoke(0) + spoke(1)
		a := reloadableNode(t, cfg, "A", &text)
		var texts [3]string
		var nodes [3]*Node
		for i := range nodes {
			texts[i] = rim(i)
			nodes[i] = reloadableNode(t, cfg, string(rune('B'+i)), &texts[i])
		}
		first, firstFar := connect(t, nodes[0], a, "10.0.0.1:80")
		second, secondFar := connect(t, a, nodes[1], "10.1.0.2:80")
		more, stop := flow(t, second, secondFar)
		passes(t, first, firstFar)
		more()
		faces := func() (list []string) {
			answer := testenv.Ask(t, a, control.Interfaces{})
			for _, f := range answer {
				list = append(list, fmt.Sprintf("%d %s %s", f.Index, f.Name, f.UDP))
			}
			return list
		}

		t.Log("# a third interface is added, and a present one gets a delay")
		text = shared + spoke(0) + spoke(1) + spoke(2) + "link if1 delay 1ms\n"
		assert.Empty(t, reload(t, a).Ended)
		third, thirdFar := connect(t, nodes[2], a, "10.2.0.1:80")
		passes(t, first, firstFar)
		passes(t, thirdFar, third)
		more()
		list := testenv.Ask(t, a, control.Impairments{})
		words := map[string]string{}
		for _, i := range list {
			words[i.Iface] += i.Words + ";"
		}
		assert.Equal(t, map[string]string{
			"if0": "nothing;nothing;", "if1": "delay 1ms;delay 1ms;", "if2": "nothing;nothing;",
		}, words, "each link of the socket has its own impairment")

		t.Log("# the first interface is removed: its peer gets a reset, and the others keep their numbers")
		text = shared + spoke(1) + spoke(2) + "link if1 delay 1ms\n"
		assert.Contains(t, reload(t, a).Ended,
			fmt.Sprintf("tcp 10.0.0.1:80 to %v", first.LocalAddr()))
		_, err := first.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = firstFar.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
		passes(t, third, thirdFar)
		more()
		where := fmt.Sprintf(" 127.0.0.1:%d", at)
		assert.Equal(t, []string{"1 if1" + where, "2 if2" + where}, faces())
		u, err := a.Packets.Dial(netip.MustParseAddrPort("10.2.0.2:7"))
		require.NoError(t, err, "a request for all interfaces skips the deleted one")
		require.NoError(t, u.Close())

		t.Log("# the socket moves with all its interfaces, and the first interface is added again")
		was := at
		at = p[4]
		text = shared + spoke(0) + spoke(1) + spoke(2)
		assert.Empty(t, reload(t, a).Ended)
		for i, n := range nodes {
			texts[i] = strings.Replace(texts[i], fmt.Sprint(was), fmt.Sprint(at), 1)
			reload(t, n)
		}
		passes(t, third, thirdFar)
		more()
		again, againFar := connect(t, nodes[0], a, "10.0.0.1:82")
		passes(t, again, againFar)
		where = fmt.Sprintf(" 127.0.0.1:%d", at)
		assert.Equal(t, []string{"0 if0" + where, "1 if1" + where, "2 if2" + where}, faces())
		assert.True(t, isFree(was))
		stop()

		t.Log("# a shared socket cannot become separate sockets")
		text = "routing rip\n" + spoke(0)
		_, err = a.Reload(control.Reload{}, nil)
		require.ErrorIs(t, err, control.ErrUnsupported)
		require.ErrorContains(t, err, "a shared socket: was true, is false")
	})
}
