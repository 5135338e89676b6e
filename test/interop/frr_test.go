//go:build linux

package interop_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// frrFolder holds the daemons of Debian's package frr.
const frrFolder = "/usr/lib/frr/"

// frrConfig configures FRR's ripd with an interface's authentication and its routes; frrNG
// configures ripngd.
const frrConfig = `key chain tide
 key 1
  key-string tide
!
interface ` + device + `
%s!
router rip
 version 2
 network ` + device + `
 timers basic 5 20 5
%s!
`

const frrNG = `interface ` + device + `
%s!
router ripng
 network ` + device + `
 timers basic 5 20 5
%s!
`

// frr starts FRR's ripd or ripngd. FRR announces routes, and authenticates as auth says.
func (b *ripBed) frr(auth string, routes []string) {
	b.t.Helper()
	lines := ""
	for _, r := range routes {
		lines += " route " + r + "\n"
	}
	b.startFRR(pick(b.family, "ripd", "ripngd"),
		fmt.Sprintf(pick(b.family, frrConfig, frrNG), auth, b.text(lines)))
}

// startFRR starts FRR's zebra and another daemon in the namespace. They run as the user frr, with
// their files in a folder of the test.
func (b *bed) startFRR(daemon, config string) {
	b.t.Helper()
	owner, err := user.Lookup("frr")
	if err != nil {
		b.t.Skip("skip: needs frr")
	}
	need(b.t, frrFolder+"zebra", frrFolder+daemon, "vtysh")
	dir, err := os.MkdirTemp("", "tidepool-frr")
	require.NoError(b.t, err)
	b.t.Cleanup(func() { assert.NoError(b.t, os.RemoveAll(dir)) })
	uid, err := strconv.Atoi(owner.Uid)
	require.NoError(b.t, err)
	require.NoError(b.t, os.Chown(dir, uid, -1))
	b.dir = dir
	for _, d := range []struct{ name, config string }{{"zebra", ""}, {daemon, config}} {
		require.NoError(b.t, os.WriteFile(b.path(d.name+".conf"), []byte(d.config), 0o644))
		p := b.start(b.commandFor(2*patience, frrFolder+d.name, "-f", b.path(d.name+".conf"),
			"-i", b.path(d.name+".pid"), "-z", b.path("zserv"), "--vty_socket", dir, "-P", "0"))
		b.t.Cleanup(func() { p.stop(syscall.SIGTERM) })
		b.until(d.name+" listens", func() bool {
			c, err := net.Dial("unix", filepath.Join(dir, d.name+".vty"))
			if err == nil {
				err = c.Close()
			}
			return err == nil
		})
	}
}

// vtysh runs a command of FRR's shell. It returns "" while FRR does not answer.
func (b *bed) vtysh(command string) string {
	out, err := b.command("vtysh", "--vty_socket", b.dir, "-c", command).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// frrRoute matches a route in FRR's tables:
//
//	R(n) 10.30.1.0/24  10.8.0.1  2 10.8.0.1  0 00:18
//	R(n) fd0a:1e:1::/48
//	                   fe80::1  tide0  2  0  00:18
var frrRoute = regexp.MustCompile(`R\(n\) (\S+)\s+(\S+)\s+(?:` + device + `\s+)?(\d+)`)

// frrHas returns the routes that FRR has learned from A, with their metrics.
func (b *ripBed) frrHas() map[string]string {
	learned := map[string]string{}
	list := b.vtysh(pick(b.family, "show ip rip", "show ipv6 ripng"))
	for _, r := range frrRoute.FindAllStringSubmatch(list, -1) {
		if r[2] == pick(b.family, gatewayIP, "fe80::1") {
			learned[r[1]] = r[3]
		}
	}
	return learned
}

// twoMessages is a number of routes that needs two messages.
const twoMessages = 30

// thirty returns the prefixes of a router's routes, and the lines by which a node originates them.
func thirty(second int) (prefixes []string, lines string) {
	for i := range twoMessages {
		p := fmt.Sprintf("10.%d.%d.0/24", second, i)
		prefixes = append(prefixes, p)
		lines += "rip originate prefix " + p + " metric 1\n"
	}
	return prefixes, lines
}

// known counts the routes of a list that a node has learned.
func (b *ripBed) known(prefixes []string) (n int) {
	learned := map[string]bool{}
	for _, r := range testenv.Ask(b.t, b.router, control.RIP{}).Routes {
		learned[r.Prefix.String()] = r.From.IsValid() && r.Cost < 16
	}
	for _, p := range prefixes {
		if learned[b.text(p)] {
			n++
		}
	}
	return n
}

// RFC 2453 §4.1 and RFC 4822: FRR and our node accept each other's 30 routes, which need two
// messages, with each kind of authentication that FRR has.
func TestFRRAndRIPv2(t *testing.T) { both(t, testFRRAndRIPv2) }

func testFRRAndRIPv2(t *testing.T, f family) {
	const chain = " ip rip authentication key-chain tide\n"
	for _, tt := range []struct{ name, ours, auth string }{
		{"none", "", ""},
		{
			"password", "rip password tun0 tide\n",
			" ip rip authentication mode text\n ip rip authentication string tide\n",
		},
		{
			"md5", "rip key tun0 1 md5 tide\n",
			" ip rip authentication mode md5 auth-length rfc\n" + chain,
		},
		{
			"md5, old length", "rip key tun0 1 md5 tide\n",
			" ip rip authentication mode md5 auth-length old-ripd\n" + chain,
		},
	} {
		if f.v6 && tt.ours != "" {
			continue // RIPng has no authentication
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // because FRR sends an update at most every 5 s, the test mostly waits
			f.report(t, &row{peer: "FRR", scenario: pick(f, "RIPv2", "RIPng") + ": 30 routes both ways, " + tt.name})
			ours, lines := thirty(30)
			theirs, _ := thirty(31)
			b := newRIPBed(t, f, tt.ours+lines)
			b.frr(tt.auth, theirs)
			b.until("FRR's routes at A", func() bool { return b.known(theirs) == twoMessages })
			b.until("our routes at FRR", func() bool {
				learned := b.frrHas()
				return !slices.ContainsFunc(ours, func(p string) bool { return learned[f.text(p)] != "2" })
			})
			for _, r := range testenv.Ask(t, b.router, control.RIP{}).Refused {
				assert.Equal(t, "authentication missing", r.Reason, "FRR signs no request")
				assert.LessOrEqual(t, r.Packets, uint64(1))
			}
		})
	}
}

// RFC 3376 §5: FRR's multicast router learns that a socket of the node has joined a group, from the
// reports of IGMP version 3 and from the answers to its queries. It also learns that the socket has
// left the group.
func TestFRRLearnsGroups(t *testing.T) {
	var f family // Debian's FRR has no MLD router
	const group = "239.1.2.3"
	f.report(t, &row{peer: "FRR", scenario: "IGMPv3: a group joined, queried, left"})
	b := &bed{t: t}
	b.namespace()
	n := b.openText("A", "interface tun0 10.8.0.1/24 tun:"+device+" kernel "+kernelIP+"\n", "")
	b.startFRR("pimd", "interface "+device+"\n ip igmp\n ip igmp version 3\n ip igmp query-interval 2\n"+
		" ip igmp query-max-response-time 5\n ip igmp last-member-query-interval 2\n ip pim\n")
	groups := regexp.MustCompile(regexp.QuoteMeta(group) + ` +EXCL +\S+ +\d+ +3 +00:00:(\d\d)`)
	// known returns for how many seconds FRR has had the group; "": FRR does not have the group.
	known := func() string {
		if m := groups.FindStringSubmatch(b.vtysh("show ip igmp groups")); m != nil {
			return m[1]
		}
		return ""
	}
	pc, err := n.Node.Packets.Listen(f.at("0.0.0.0", 5000))
	require.NoError(t, err)
	require.NoError(t, pc.Join("tun0", netip.MustParseAddr(group)))
	// Without answers to queries FRR would forget the group after 2*2 + 0.5 seconds (RFC 3376 §8.4).
	b.until("FRR keeps the group", func() bool { return known() >= "07" })
	require.NoError(t, pc.Leave("tun0", netip.MustParseAddr(group)))
	b.until("FRR has forgotten the group", func() bool {
		return strings.Contains(b.vtysh("show ip igmp groups"), "Total IGMP groups: 0")
	})
	require.NoError(t, pc.Close())
}
