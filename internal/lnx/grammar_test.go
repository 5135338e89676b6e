package lnx_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

var (
	courseRIP = lnx.RIP{Periodic: 5 * time.Second, Timeout: 12 * time.Second, EntrySize: 12}
	courseTCP = lnx.TCP{RTOMin: time.Millisecond, RTOMax: 5 * time.Second}
)

func iface(name, addr, host string, port uint16) lnx.Interface {
	return lnx.Interface{
		Name: name, Addr: netip.MustParsePrefix(addr), UDP: lnx.HostPort{Host: host, Port: port},
	}
}

func neighbor(addr, host string, port uint16, via string) lnx.Neighbor {
	return lnx.Neighbor{
		Addr: netip.MustParseAddr(addr), UDP: lnx.HostPort{Host: host, Port: port}, Iface: via,
	}
}

func addrs(texts ...string) []netip.Addr {
	var list []netip.Addr
	for _, text := range texts {
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}

func parse(t *testing.T, text string) *lnx.Config {
	t.Helper()
	cfg, err := lnx.Parse("x/N.lnx", []byte(text))
	require.NoError(t, err)
	return cfg
}

// TestGrammars reads the same node in each grammar.
func TestGrammars(t *testing.T) {
	oldRIP := func(entrySize int, to ...string) lnx.RIP {
		rip := courseRIP
		rip.EntrySize = entrySize
		rip.AdvertiseTo = addrs(to...)
		return rip
	}
	shared := []lnx.Interface{
		iface("if0", "192.168.0.2/32", "localhost", 5001),
		iface("if1", "192.168.0.3/32", "localhost", 5001),
	}
	sharedNeighbors := []lnx.Neighbor{
		neighbor("192.168.0.1", "localhost", 5000, "if0"),
		neighbor("192.168.0.4", "localhost", 5002, "if1"),
	}
	for name, test := range map[string]struct {
		text    string
		grammar lnx.Grammar
		want    lnx.Config
	}{
		"new host": {
			`# a host behind a router
interface if0 10.0.0.1/24 127.0.0.1:5000
neighbor 10.0.0.2 at 127.0.0.1:5001 via if0 # the router

routing static

route 0.0.0.0/0 via 10.0.0.2

tcp rto-min 2000 # microseconds
tcp rto-max 4000000
`,
			lnx.GrammarNew,
			lnx.Config{
				Interfaces: []lnx.Interface{iface("if0", "10.0.0.1/24", "127.0.0.1", 5000)},
				Neighbors:  []lnx.Neighbor{neighbor("10.0.0.2", "127.0.0.1", 5001, "if0")},
				Routes: []lnx.Route{{
					Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.0.0.2"),
				}},
				RIP: courseRIP,
				TCP: lnx.TCP{RTOMin: 2 * time.Millisecond, RTOMax: 4 * time.Second},
			},
		},
		"new router": {
			`interface if0 10.0.0.2/24 127.0.0.1:5001 # hosts
neighbor 10.0.0.1 at 127.0.0.1:5000 via if0
neighbor 10.0.0.3 at 127.0.0.1:5009 via if0
interface if1 10.1.0.1/30 127.0.0.1:5002
neighbor 10.1.0.2 at 127.0.0.1:5003 via if1
routing rip # as routers do
rip advertise-to 10.1.0.2
rip originate prefix 10.0.0.0/16
rip periodic-update-rate 500 # milliseconds
rip route-timeout-threshold 1200
`,
			lnx.GrammarNew,
			lnx.Config{
				Interfaces: []lnx.Interface{
					iface("if0", "10.0.0.2/24", "127.0.0.1", 5001),
					iface("if1", "10.1.0.1/30", "127.0.0.1", 5002),
				},
				Neighbors: []lnx.Neighbor{
					neighbor("10.0.0.1", "127.0.0.1", 5000, "if0"),
					neighbor("10.0.0.3", "127.0.0.1", 5009, "if0"),
					neighbor("10.1.0.2", "127.0.0.1", 5003, "if1"),
				},
				Routing: lnx.RoutingRIP, Forwarding: true,
				RIP: lnx.RIP{
					AdvertiseTo: addrs("10.1.0.2"),
					Originate:   []lnx.Announcement{{Prefix: netip.MustParsePrefix("10.0.0.0/16")}},
					Periodic:    500 * time.Millisecond, Timeout: 1200 * time.Millisecond, EntrySize: 12,
				},
				TCP: courseTCP,
			},
		},
		"2018 to 2022": {
			"localhost 5001\nlocalhost 5000 192.168.0.2 192.168.0.1\nlocalhost 5002 192.168.0.3 192.168.0.4\n",
			lnx.Grammar2018,
			lnx.Config{
				Interfaces: shared, Neighbors: sharedNeighbors, SharedSocket: true,
				Routing: lnx.RoutingRIP, Forwarding: true,
				RIP: oldRIP(12, "192.168.0.1", "192.168.0.4"), TCP: courseTCP,
			},
		},
		"2013 to 2017": {
			"localhost:5001\nlocalhost:5000 192.168.0.2 192.168.0.1\nlocalhost:5002 192.168.0.3 192.168.0.4",
			lnx.Grammar2013,
			lnx.Config{
				Interfaces: shared, Neighbors: sharedNeighbors, SharedSocket: true,
				Routing: lnx.RoutingRIP, Forwarding: true,
				RIP: oldRIP(8, "192.168.0.1", "192.168.0.4"), TCP: courseTCP,
			},
		},
		"to 2012": {
			"localhost:17000 10.10.168.73 localhost:17001 10.116.89.157\n" +
				"localhost:17003 10.10.168.74 far.example.net:17004 10.42.3.125\n",
			lnx.Grammar2012,
			lnx.Config{
				Interfaces: []lnx.Interface{
					iface("if0", "10.10.168.73/32", "localhost", 17000),
					iface("if1", "10.10.168.74/32", "localhost", 17003),
				},
				Neighbors: []lnx.Neighbor{
					neighbor("10.116.89.157", "localhost", 17001, "if0"),
					neighbor("10.42.3.125", "far.example.net", 17004, "if1"),
				},
				Routing: lnx.RoutingRIP, Forwarding: true,
				RIP: oldRIP(8, "10.116.89.157", "10.42.3.125"), TCP: courseTCP,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := parse(t, test.text)
			assert.Equal(t, test.grammar, cfg.Grammar)
			assert.Equal(t, "N", cfg.Name)
			assert.Empty(t, cfg.Notes)
			assert.Equal(t, &test.want, cfg.Plain())
		})
	}
}

// TestDetection reads files whose first lines fit several grammars.
func TestDetection(t *testing.T) {
	const link2018 = "localhost 5001\nlocalhost 5000 192.168.0.2 192.168.0.1\n"
	for name, test := range map[string]struct {
		text string
		want lnx.Grammar
	}{
		"comment before directives": {
			"# note\n\n  # more\nrouting rip\ninterface if0 10.0.0.1/24 127.0.0.1:5000\n", lnx.GrammarNew,
		},
		"comment before an old file": {"# B\n\n" + link2018, lnx.Grammar2018},
		"blanks, tabs and carriage returns": {
			"\r\n \t\r\n\tlocalhost \t 5001\r\nlocalhost 5000\t192.168.0.2 192.168.0.1 \r\n", lnx.Grammar2018,
		},
		"byte order mark": {"\xef\xbb\xbf" + link2018, lnx.Grammar2018},
		"carriage returns only": {
			"localhost:5001\rlocalhost:5000 192.168.0.2 192.168.0.1\r", lnx.Grammar2013,
		},
		"addresses for hosts": {"127.0.0.1 5001\n127.0.0.1 5000 10.0.0.2 10.0.0.1\n", lnx.Grammar2018},
		"host names": {
			"a-1.example.net:5001\nb_2:5000 10.0.0.2 10.0.0.1\n", lnx.Grammar2013,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := parse(t, test.text)
			assert.Equal(t, test.want, cfg.Grammar)
			assert.Len(t, cfg.Interfaces, 1)
		})
	}
}

func TestExtensions(t *testing.T) {
	cfg := parse(t, `
link if0 mtu 576
socket shared
interface if0 10.0.0.1/24 host.example.net:5000
interface if1 10.1.0.1/32 host.example.net:5000
interface tun0 10.2.0.1/24 tun:tide0 kernel 10.2.0.2
interface tun1 10.3.0.1/24 tun:tide1
link if0 loss 2% delay 5ms jitter 1.5ms dup 0.5% reorder 0.0001% corrupt 100% rate 10mbit
link if1 mtu 65507 rate 9600bit
routing rip2
route 10.9.0.0/16 via 10.2.0.2
rip entry-size 8
tcp profile 004
tcp options off
`)
	shared := iface("if0", "10.0.0.1/24", "host.example.net", 5000)
	shared.MTU = 576
	shared.Impair = lnx.Impairments{
		Loss: 20_000, Duplicate: 5_000, Reorder: 1, Corrupt: 1_000_000,
		Delay: 5 * time.Millisecond, Jitter: 1500 * time.Microsecond, RateBitsPerSec: 10_000_000,
	}
	point := iface("if1", "10.1.0.1/32", "host.example.net", 5000)
	point.MTU = 65_507
	point.Impair.RateBitsPerSec = 9600
	rip := lnx.RIP{Periodic: 30 * time.Second, Timeout: 180 * time.Second, EntrySize: 8}
	assert.Equal(t, &lnx.Config{
		Interfaces: []lnx.Interface{
			shared, point,
			{
				Name: "tun0", Addr: netip.MustParsePrefix("10.2.0.1/24"),
				Tun: &lnx.Tun{Device: "tide0", Kernel: []netip.Addr{netip.MustParseAddr("10.2.0.2")}},
			},
			{
				Name: "tun1", Addr: netip.MustParsePrefix("10.3.0.1/24"),
				Tun: &lnx.Tun{Device: "tide1"},
			},
		},
		Routing: lnx.RoutingRIP2, Forwarding: true, SharedSocket: true,
		Routes: []lnx.Route{{
			Prefix: netip.MustParsePrefix("10.9.0.0/16"), Via: netip.MustParseAddr("10.2.0.2"),
		}},
		RIP: rip,
		TCP: lnx.TCP{
			RTOMin: 10 * time.Millisecond, RTOMax: time.Second, OptionsOff: true, Profile: "004",
		},
	}, cfg.Plain())
	assert.Equal(t, lnx.Share(20_000), cfg.Interfaces[0].Impair.Loss)
}

// TestCourseFilesWithoutTiming checks that files without timing lines get the defaults of 2023,
// when files had no such lines.
func TestCourseFilesWithoutTiming(t *testing.T) {
	cfg := parse(t, "interface if0 10.1.0.2/24 127.0.0.1:5003 # to network r1-r2\n"+
		"neighbor 10.1.0.1 at 127.0.0.1:5002 via if0 # r1\n\n"+
		"rip advertise-to 10.1.0.1\n\nrouting rip\n")
	assert.Equal(t, 5*time.Second, cfg.RIP.Periodic)
	assert.Equal(t, 12*time.Second, cfg.RIP.Timeout)
	assert.Equal(t, courseTCP, cfg.TCP)
}

func TestPositions(t *testing.T) {
	cfg := parse(t, "# é\n\tinterface if0 10.0.0.1/24 127.0.0.1:5000\nneighbor  10.0.0.2 at b:1 via if0\n"+
		"route 0.0.0.0/0 via 10.0.0.2")
	assert.Equal(t, lnx.Pos{Line: 2, Col: 12}, cfg.Interfaces[0].Pos)
	assert.Equal(t, lnx.Pos{Line: 3, Col: 11}, cfg.Neighbors[0].Pos)
	assert.Equal(t, lnx.Pos{Line: 4, Col: 7}, cfg.Routes[0].Pos)
}

func TestNotes(t *testing.T) {
	cfg := parse(t, `interface if0 10.0.0.1/24 127.0.0.1:5000
neighbor 10.0.0.2 at 127.0.0.1:5001 via if0
rip advertise-to 10.0.0.2
`)
	require.EqualError(t, cfg.Notes,
		`x/N.lnx:3:18: note: nothing is advertised without "routing rip"
    rip advertise-to 10.0.0.2
                     ^^^^^^^^`)
	assert.NoError(t, cfg.Notes.Err(), "notes are no mistakes")
}

func TestLookups(t *testing.T) {
	cfg := parse(t, "interface if0 10.0.0.130/25 localhost:5000\n")
	found, ok := cfg.Interface("if0")
	require.True(t, ok)
	assert.Equal(t, netip.MustParsePrefix("10.0.0.128/25"), found.Addrs()[0].Masked())
	_, ok = cfg.Interface("if1")
	assert.False(t, ok)
	addr, ok := found.UDP.AddrPort()
	assert.True(t, ok)
	assert.Equal(t, netip.MustParseAddrPort("127.0.0.1:5000"), addr)
	_, ok = lnx.HostPort{Host: "far.example.net", Port: 1}.AddrPort()
	assert.False(t, ok)
}

func TestNames(t *testing.T) {
	assert.Equal(t, "new", lnx.GrammarNew.String())
	assert.Equal(t, "2018-2022", lnx.Grammar2018.String())
	assert.Equal(t, "2013-2017", lnx.Grammar2013.String())
	assert.Equal(t, "to 2012", lnx.Grammar2012.String())
	assert.Equal(t, "grammar 9", lnx.Grammar(9).String())
	assert.Equal(t, "routing 9", lnx.Routing(9).String())
	for share, want := range map[lnx.Share]string{
		0: "0%", 1: "0.0001%", 5_000: "0.5%", 20_000: "2%", 123_456: "12.3456%", 1_000_000: "100%",
	} {
		assert.Equal(t, want, share.String())
	}
}

// RFC 1123 §2.1: a name may begin with a digit. A name that ends in a number is read as an address.
func TestHostNames(t *testing.T) {
	const face = "interface if0 10.0.0.1/24 %s:5000\n"
	for _, good := range []string{"localhost", "127.0.0.1", "3com.example", "a1", "7.sea"} {
		cfg := parse(t, fmt.Sprintf(face, good))
		assert.Equal(t, good, cfg.Interfaces[0].UDP.Host)
	}
	for _, bad := range []string{"127.0.0.256", "1.2.3", "17", "sea.7", "a..b", "a,b"} {
		_, err := lnx.Parse("N.lnx", []byte(fmt.Sprintf(face, bad)))
		require.ErrorContains(t, err, fmt.Sprintf("%q is not a host", bad))
	}
}

// A node with a TUN device and another link forwards packets between them, with any routing. A node
// with only the TUN device is a host.
func TestTUNAndAnotherLinkForward(t *testing.T) {
	const tun = "interface tun0 10.2.0.1/24 tun:tide0\n"
	const udp = "interface if0 10.0.0.1/24 127.0.0.1:5000\n"
	for text, want := range map[string]bool{
		tun: false, udp: false, tun + udp: true, udp + tun + "routing none\n": true,
	} {
		assert.Equal(t, want, parse(t, text).Forwarding, text)
	}
}

// A text that is not an .lnx file causes one error, not one for each line.
func TestTextThatIsNotAnLnxFile(t *testing.T) {
	text := "# tidepool\n\nAn internet in one program.\nIts links are UDP sockets.\nGo is enough.\n"
	_, errs := lnx.Read("README.md", []byte(text))
	require.Len(t, errs, 1)
	assert.Equal(t, 3, errs[0].Line)
	assert.Contains(t, errs[0].Msg, `"An" is not a directive (did you mean dns?); 3 of 3 lines begin with no directive: this is not an .lnx file`)

	_, errs = lnx.Read("README.md", []byte(strings.Repeat(text, 10)+"tcp is a transport\n"))
	assert.Len(t, errs, 1, "one line of many may begin with a directive")

	_, errs = lnx.Read("A.lnx", []byte("An error\nroute 10.0.0.0/8\nAnother one\nA third\n"))
	assert.Greater(t, len(errs), 2, "a file with a directive has all of its errors")
}

// The machine's addresses in port forwards may be IPv6. Format keeps their form.
func TestForwardsAtIPv6Addresses(t *testing.T) {
	lines := "publish [::1]:8080 [2001:db8::2]:80\nexpose 80 [::1]:3000 udp\nsplice 2001:db8::1 ::1\n"
	c, err := lnx.Parse("a.lnx", []byte("interface if0 2001:db8::1/64 127.0.0.1:5000\n"+lines))
	require.NoError(t, err)
	var got string
	for i := range c.Forwards {
		got += c.Forwards[i].String() + "\n"
	}
	assert.Equal(t, lines, got)
	assert.Equal(t, "::1", c.Forwards[0].On().String())
	for line, want := range map[string]string{
		"expose 80 [::1:3000":     `"[::1" is not an address; expected an address of this machine`,
		"expose 80 [::1]:0":       `"0" is not a port`,
		"expose 80 [ff02::1]:300": `"ff02::1" is not an address`,
	} {
		_, err := lnx.Parse("a.lnx", []byte("interface if0 2001:db8::1/64 127.0.0.1:5000\n"+line+"\n"))
		require.ErrorContains(t, err, want)
	}
}

// The UDP addresses of links may be IPv6, in brackets. Both ends must have the same family. The
// exception is [::], whose socket serves both families.
func TestLinksOverIPv6(t *testing.T) {
	file := func(own, other, more string) string {
		return "interface if0 10.0.0.1/24 " + own + "\nneighbor 10.0.0.2 at " + other + " via if0\n" + more
	}
	c, err := lnx.Parse("a.lnx", []byte(file("[0::1]:5000", "[2001:DB8::2]:5001", "link if0 mtu 65527\n")))
	require.NoError(t, err)
	assert.Equal(t, "[::1]:5000", c.Interfaces[0].UDP.String())
	assert.Equal(t, lnx.HostPort{Host: "2001:db8::2", Port: 5001}, c.Neighbors[0].UDP)
	again, err := lnx.Parse("a.lnx", c.Format())
	require.NoError(t, err)
	assert.Equal(t, string(c.Format()), string(again.Format()))
	for _, host := range []string{"127.0.0.1", "[::1]", "bee.example"} {
		_, err := lnx.Parse("a.lnx", []byte(file("[::]:5000", host+":5001", "")))
		require.NoError(t, err)
	}
	_, err = lnx.Parse("a.lnx", []byte("interface if0 10.0.0.1/24 0.0.0.0:5000\n"+
		"interface if1 10.1.0.1/24 [::1]:5000\n"))
	require.NoError(t, err, "sockets of two families")
	for text, want := range map[string]string{
		file("127.0.0.1:5000", "[::1]:5001", ""): `[::1]:5001 is IPv6, and if0 has ` +
			`127.0.0.1:5000; expected an IPv4 address, or [::]:5000 for if0`,
		file("[::1]:5000", "localhost:5001", ""): `localhost:5001 is IPv4, and if0 has [::1]:5000`,
		file("::1:5000", "[::1]:5001", ""):       `"::1" is an IPv6 address without brackets`,
		file("[127.0.0.1]:5000", "[::1]:1", ""):  `"127.0.0.1" is not an IPv6 address of a machine`,
		file("[ff02::1]:5000", "[::1]:1", ""):    `"ff02::1" is not an IPv6 address of a machine`,
		file("[fe80::1]:5000", "[::1]:1", ""):    `"fe80::1" is an address of one link of the machine`,
		file("[::1]:5000", "[::]:5001", ""):      `"[::]:5001" is an address to which nothing can be sent`,
		file("[::]:5000", "[::1]:5001", "interface if1 10.1.0.1/24 127.0.0.1:5000\n"): "127.0.0.1:5000 is " +
			"already the UDP address of if0",
		file("[::1]:5000", "[::1]:5001", "link if0 mtu 65528\n"): `"65528" is out of range`,
		file("h:5000", "h:5001", "link if0 mtu 65508\n"):         `"65508" is more than UDP over IPv4 carries`,
		"::1 5000\n::1 5001 10.0.0.1 10.0.0.2\n":                 "",
		"[::1]:5000\n[::1]:5001 10.0.0.1 10.0.0.2\n":             `"[::1]" is not a host`,
	} {
		_, err := lnx.Parse("a.lnx", []byte(text))
		require.ErrorContains(t, err, want, text)
	}
}
