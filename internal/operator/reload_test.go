package operator_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// rewritable starts a node whose file can be replaced.
func rewritable(t *testing.T, name string, text *string) *operator.Node {
	t.Helper()
	return operatortest.Open(t, operator.Config{
		LNX: testenv.ParseNode(t, name, *text), Reread: func() (*lnx.Config, error) {
			return lnx.Parse(name+".lnx", []byte(*text))
		},
	})
}

func reload(t *testing.T, n *operator.Node) control.Reloaded {
	t.Helper()
	done := testenv.Ask(t, n, control.Reload{})
	return done
}

// A reload applies the changes in the file, and a connection stays open.
func TestReloadAppliesChanges(t *testing.T) {
	p := testenv.FreePorts(t, 2)
	links := "interface if0 10.0.0.%d/24 127.0.0.1:%d\nneighbor 10.0.0.%d at 127.0.0.1:%d via if0\n"
	text := fmt.Sprintf(links, 1, p[0], 2, p[1])
	a := rewritable(t, "A", &text)
	base := text
	b := start(t, node.Config{}, "B", fmt.Sprintf(links, 2, p[1], 1, p[0]))
	client, server := operatortest.Connect(t, a, b, "10.0.0.2:80")
	assert.Empty(t, reload(t, a).Changes, "the file is the same")

	text = base + "link if0 delay 30ms\nroute 10.7.0.0/16 via 10.0.0.2\nicmp echo off\n" +
		"tcp rto-min 300000\npublish 0.0.0.0:1 10.0.0.2:80\n"
	text = strings.Replace(text, "0.0.0.0:1 ", fmt.Sprintf("%d ", tcpPort(t)), 1)
	with := text
	try := testenv.Ask(t, a, control.Reload{Try: true})
	assert.Len(t, try.Changes, 5)
	assert.Empty(t, testenv.Ask(t, a, control.Doors{}), "it was only tried")
	done := reload(t, a)
	assert.Equal(t, try, done)
	assert.Equal(t, []string{
		"tcp settings", "ip and icmp settings",
		"route 10.7.0.0/16 via 10.0.0.2 metric 0", "link if0: delay 30ms in, delay 30ms out",
	}, done.Changes[1:])
	assert.Len(t, testenv.Ask(t, a, control.Doors{}), 1)
	ping := control.Ping{Addr: netip.MustParseAddr("10.0.0.2"), Count: 1}
	seen := testenv.Ask(t, a, ping)
	assert.GreaterOrEqual(t, seen.Min, 60*time.Millisecond, "the delay is there, each way")
	for key, want := range map[string]string{ // a node that starts with this file has these values
		"tcp.rtomin": "300ms", "tcp.rtoinitial": "1s", "tcp.delayedack": "40ms",
	} {
		assert.Equal(t, want, testenv.Ask(t, a, control.Show{Key: key})[0].Value, key)
	}

	text = base
	assert.Len(t, reload(t, a).Changes, 5)
	assert.Empty(t, testenv.Ask(t, a, control.Doors{}))
	routes := testenv.Ask(t, a, control.Routes{})
	assert.Len(t, routes, 1)
	assert.Empty(t, reload(t, a).Changes)
	delay := testenv.Ask(t, a, control.Show{Key: "tcp.delayedack"})[0]
	assert.Equal(t, "200µs", delay.Value, "below the RTO's minimum of 1 ms")

	_, err := client.Write([]byte("on it goes"))
	require.NoError(t, err)
	_, err = io.ReadFull(server, make([]byte, 10))
	require.NoError(t, err)
	text = with
	reload(t, a)
}

// A reload takes every field of a file's TCP settings, or reports that it needs a restart. It keeps
// the settings that the file does not change.
func TestReloadAppliesEveryTCPSetting(t *testing.T) {
	p := testenv.FreePorts(t, 1)
	text := fmt.Sprintf("interface if0 10.0.0.1/24 127.0.0.1:%d\n", p[0])
	file := testenv.ParseNode(t, "A", text)
	next := *file
	n := operatortest.Open(t, operator.Config{
		LNX: file, Reread: func() (*lnx.Config, error) { return &next, nil },
	})
	for field := range reflect.TypeFor[lnx.TCP]().Fields() {
		next = *file
		switch v := reflect.ValueOf(&next.TCP).Elem().FieldByIndex(field.Index); v.Kind() {
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Int64:
			v.SetInt(v.Int() + int64(time.Millisecond))
		case reflect.String:
			v.SetString("004")
		default:
			require.Fail(t, "set another value", "%s", field.Name)
		}
		done := testenv.Ask(t, n, control.Reload{Try: true})
		assert.NotEmpty(t, slices.Concat(done.Changes, done.Restart), field.Name)
	}
	testenv.Ask(t, n, control.Set{Key: "tcp.congestion", Value: "reno"})
	testenv.Ask(t, n, control.Set{Key: "tcp.rtomax", Value: "9s"})
	next = *file
	next.TCP.OptionsOff = true
	reload(t, n)
	for key, want := range map[string]string{
		"tcp.congestion": "reno", "tcp.rtomax": "9s", "tcp.options": "off",
	} {
		assert.Equal(t, want, testenv.Ask(t, n, control.Show{Key: key})[0].Value, key)
	}
}

// A socket that a reload closes is released, even if its counters were cleared before.
func TestReloadReleasesClosedSockets(t *testing.T) {
	p := testenv.FreePorts(t, 3)
	line := "interface if0 10.0.0.1/24 127.0.0.1:%d\nneighbor 10.0.0.2 at 127.0.0.1:%d via if0\n"
	text := fmt.Sprintf(line, p[0], p[1])
	n := rewritable(t, "A", &text)
	require.NoError(t, control.Order(t.Context(), n, control.ClearCounters{}))
	var socket weak.Pointer[link.UDP]
	require.NoError(t, n.Node.Call(func(*stack.Stack, clock.Time) error {
		socket = weak.Make(n.Node.Devices.Unimpaired(0).(*link.UDP))
		return nil
	}))
	text = fmt.Sprintf(line, p[2], p[1])
	reload(t, n)
	for range 2 { // the loop's goroutine may still have had the socket in a register
		testenv.Ask(t, n, control.Interfaces{})
		runtime.GC()
	}
	assert.Nil(t, socket.Value(), "the closed socket is still reachable")
}

func listenHere(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func tcpPort(t *testing.T) int {
	t.Helper()
	l := listenHere(t)
	defer l.Close()
	a, _ := l.Addr().(*net.TCPAddr)
	return a.Port
}

// A reload that fails changes nothing.
func TestFailedReloadChangesNothing(t *testing.T) {
	p := testenv.FreePorts(t, 3)
	base := fmt.Sprintf("interface if0 10.0.0.1/24 127.0.0.1:%d\n"+
		"neighbor 10.0.0.2 at 127.0.0.1:%d via if0\n", p[0], p[1])
	text := base
	a := rewritable(t, "A", &text)

	text = base + "rout 1\nlink if0 loss 200%\n"
	_, err := a.Do(t.Context(), control.Reload{})
	require.ErrorIs(t, err, control.ErrUsage)
	var all lnx.Errors
	require.ErrorAs(t, err, &all)
	assert.Len(t, all, 2)
	assert.Equal(t, 3, all[0].Line)

	text = base + fmt.Sprintf("interface if1 10.1.0.1/24 127.0.0.1:%d\nlink if0 mtu 576\n", p[2]) +
		"tcp profile 004\nrouting rip\n"
	_, err = a.Do(t.Context(), control.Reload{})
	require.ErrorIs(t, err, control.ErrUnsupported)
	require.ErrorContains(t, err, "routing: was static, is rip; tcp profile: was none, is 004")
	tried := testenv.Ask(t, a, control.Reload{Try: true})
	assert.Len(t, tried.Restart, 2)

	// If a change fails, the changes before it are undone.
	taken := listenHere(t)
	text = base + fmt.Sprintf("expose 80 3000\npublish %v 10.0.0.2:80\n", taken.Addr())
	_, err = a.Do(t.Context(), control.Reload{})
	require.ErrorIs(t, err, control.ErrPortInUse)
	var at *lnx.Error
	require.ErrorAs(t, err, &at)
	assert.Equal(t, 4, at.Line)
	assert.Empty(t, testenv.Ask(t, a, control.Doors{}))

	// A port forward whose target changes keeps its port.
	port := tcpPort(t)
	text = base + fmt.Sprintf("publish %d 10.0.0.2:80\n", port)
	reload(t, a)
	text = base + fmt.Sprintf("publish %d 10.0.0.2:81\n", port)
	reload(t, a)
	doors := testenv.Ask(t, a, control.Doors{})
	require.Len(t, doors, 1)
	assert.Equal(t, "10.0.0.2:81", doors[0].To)

	b := start(t, node.Config{}, "B", fmt.Sprintf("interface if0 10.0.0.2/24 127.0.0.1:%d\n", p[1]))
	_, err = b.Do(t.Context(), control.Reload{})
	require.ErrorIs(t, err, control.ErrUnsupported)
}

// A reload of RIP announces a new prefix and relearns the same routes.
func TestReloadOfRIP(t *testing.T) {
	p := testenv.FreePorts(t, 3)
	text := "interface if0 10.0.0.%d/24 127.0.0.1:%d\nneighbor 10.0.0.%d at 127.0.0.1:%d via if0\n" +
		"routing rip\nrip advertise-to 10.0.0.%d\n"
	one := fmt.Sprintf(text, 1, p[0], 2, p[1], 2)
	a := rewritable(t, "A", &one)
	b := start(t, node.Config{}, "B", fmt.Sprintf(text, 2, p[1], 1, p[0], 1)+
		fmt.Sprintf("interface if1 10.1.0.1/24 127.0.0.1:%d\n", p[2]))
	has := func(n *operator.Node, prefix string) {
		t.Helper()
		require.Eventually(t, func() bool {
			routes := testenv.Ask(t, n, control.Routes{})
			for _, r := range routes {
				if r.Prefix.String() == prefix && r.Origin == control.OriginRIP {
					return true
				}
			}
			return false
		}, 20*time.Second, 5*time.Millisecond)
	}
	has(a, "10.1.0.0/24")
	one += "rip originate prefix 10.9.0.0/16\nrip periodic-update-rate 1000\n"
	assert.Equal(t, []string{"rip"}, reload(t, a).Changes)
	has(a, "10.1.0.0/24")
	has(b, "10.9.0.0/16")
}

// A running capture includes the interfaces that a reload adds.
func TestCaptureIncludesNewInterfaces(t *testing.T) {
	p := testenv.FreePorts(t, 4)
	const link = "interface if%d 10.%[1]d.0.%d/24 127.0.0.1:%d\n" +
		"neighbor 10.%[1]d.0.%[4]d at 127.0.0.1:%[5]d via if%[1]d\n"
	text := fmt.Sprintf(link, 0, 1, p[0], 2, p[1])
	a := rewritable(t, "A", &text)
	file := filepath.Join(t.TempDir(), "a.pcapng")
	testenv.Ask(t, a, control.StartCapture{File: file, Filter: "tcp port 81"})
	text += fmt.Sprintf(link, 1, 1, p[2], 2, p[3])
	assert.Len(t, reload(t, a).Changes, 2)
	c := start(t, node.Config{}, "C", fmt.Sprintf(link, 1, 2, p[3], 1, p[2]))
	operatortest.Connect(t, c, a, "10.1.0.1:81")
	testenv.Ask(t, a, control.StopCapture{})
	assert.Equal(t, []string{"if1"}, facesIn(t, file))
}

// facesIn returns the interfaces of a capture's packets.
func facesIn(t *testing.T, path string) (names []string) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	r, err := pcapgo.NewNgReader(f, pcapgo.NgReaderOptions{})
	require.NoError(t, err)
	for {
		_, about, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return names
		}
		require.NoError(t, err)
		face, err := r.Interface(about.InterfaceIndex)
		require.NoError(t, err)
		if !slices.Contains(names, face.Name) {
			names = append(names, face.Name)
		}
	}
}
