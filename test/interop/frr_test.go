//go:build linux

package interop_test

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// frrFolder holds the daemons of Debian's package frr.
const frrFolder = "/usr/lib/frr/"

// frrConfig configures FRR's ripd with an interface's authentication and its routes, and frrNG its
// ripngd.
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

// frr starts FRR's zebra, and ripd or ripngd, in the namespace. They run as the user frr, with their files
// in a folder of the test. FRR announces routes, and authenticates as auth says.
func (b *ripBed) frr(auth string, routes []string) {
	b.t.Helper()
	owner, err := user.Lookup("frr")
	if err != nil {
		b.t.Skip("skip: needs frr")
	}
	ripd := pick(b.family, "ripd", "ripngd")
	need(b.t, frrFolder+"zebra", frrFolder+ripd, "vtysh")
	dir, err := os.MkdirTemp("", "tidepool-frr")
	require.NoError(b.t, err)
	b.t.Cleanup(func() { assert.NoError(b.t, os.RemoveAll(dir)) })
	uid, err := strconv.Atoi(owner.Uid)
	require.NoError(b.t, err)
	require.NoError(b.t, os.Chown(dir, uid, -1))
	b.dir = dir

	lines := ""
	for _, r := range routes {
		lines += " route " + r + "\n"
	}
	for name, text := range map[string]string{
		"zebra": "", ripd: fmt.Sprintf(pick(b.family, frrConfig, frrNG), auth, b.text(lines)),
	} {
		require.NoError(b.t, os.WriteFile(b.path(name+".conf"), []byte(text), 0o644))
	}
	for _, name := range []string{"zebra", ripd} {
		p := b.start(b.commandFor(2*patience, frrFolder+name, "-f", b.path(name+".conf"),
			"-i", b.path(name+".pid"), "-z", b.path("zserv"), "--vty_socket", dir, "-P", "0"))
		b.t.Cleanup(func() { p.stop(syscall.SIGTERM) })
		b.until(name+" listens", func() bool {
			c, err := net.Dial("unix", filepath.Join(dir, name+".vty"))
			if err == nil {
				err = c.Close()
			}
			return err == nil
		})
	}
}

// frrRoute matches a route of FRR's tables:
//
//	R(n) 10.30.1.0/24  10.8.0.1  2 10.8.0.1  0 00:18
//	R(n) fd0a:1e:1::/48
//	                   fe80::1  tide0  2  0  00:18
var frrRoute = regexp.MustCompile(`R\(n\) (\S+)\s+(\S+)\s+(?:` + device + `\s+)?(\d+)`)

// frrHas returns the routes that FRR has learned from A, with their metrics.
func (b *ripBed) frrHas() map[string]string {
	out, err := b.command("vtysh", "--vty_socket", b.dir, "-c", pick(b.family, "show ip rip", "show ipv6 ripng")).Output()
	require.NoError(b.t, err)
	learned := map[string]string{}
	for _, r := range frrRoute.FindAllStringSubmatch(string(out), -1) {
		if r[2] == pick(b.family, gatewayIP, "fe80::1") {
			learned[r[1]] = r[3]
		}
	}
	return learned
}

// twoMessages is a number of routes that needs two messages.
const twoMessages = 30

// thirty returns the prefixes of a router, and the lines with which a node originates them.
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

// RFC 2453 §4.1 and RFC 4822: FRR and we take each other's 30 routes, which are two messages,
// with each authentication that FRR has.
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
			t.Parallel() // FRR sends an update every 5 s at most
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
