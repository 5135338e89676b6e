//go:build linux

package interop_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/operator"
)

// ripBed is BIRD on the kernel, and two routers of ours behind a TUN device:
//
//	BIRD, kernel 10.8.0.2 -- tun -- A 10.0.0.1 -- udp -- 10.0.0.2 B 10.2.0.1 -- udp -- C
//
// BIRD announces 172.16.0.0/12 with a tag and 192.168.0.0/16 with a metric.
type ripBed struct {
	*bed
	router *operator.Node // the node A
	beyond *operator.Node // the node B
	static string         // routes that BIRD announces
}

// fastTimers keeps the waiting times of the test short.
const fastTimers = `rip periodic-update-rate 1000
rip route-timeout-threshold 20000
rip garbage-collection-time 2000
rip triggered-update-delay 0 100
`

const (
	birdID     = "log stderr all;\nrouter id 10.8.0.2;\n"
	birdStatic = `protocol device { scan time 1; }
protocol kernel { ipv4 { import none; export where source = RTS_RIP; }; }
protocol static elsewhere {
	ipv4;
	route 172.16.0.0/12 blackhole { rip_tag = 77; };
	route 192.168.0.0/16 blackhole { rip_metric = 4; };
}
`
	birdRIP = `protocol %s tide {
	ipv4 { import all; export where source = RTS_STATIC; };
	interface "` + device + `" {
		%s
		update time 1; timeout time 20; garbage time 2;
		%s
	};
}
`
)

// newRIPBed starts our routers. keys are lines for A's file about tun0.
func newRIPBed(t *testing.T, f family, keys string) *ripBed {
	t.Helper()
	b := &ripBed{bed: &bed{family: f, t: t}, static: birdStatic}
	b.namespace()
	b.router = b.openText("A", `interface tun0 10.8.0.1/24 tun:`+device+` kernel `+kernelIP+`
interface if0 10.0.0.1/24 127.0.0.1:5000
neighbor 10.0.0.2 at 127.0.0.1:5001 via if0
routing rip2
`+fastTimers+keys, "")
	b.beyond = b.openText("B", `interface if0 10.0.0.2/24 127.0.0.1:5001
interface if1 10.2.0.1/24 127.0.0.1:5002
neighbor 10.0.0.1 at 127.0.0.1:5000 via if0
neighbor 10.2.0.2 at 127.0.0.1:5003 via if1
routing rip2
rip originate prefix 10.9.0.0/16 metric 5 tag 1234
`+fastTimers, "")
	b.openText("C", files["C"], "")
	return b
}

// bird starts BIRD with a mode of sending and an authentication.
func (b *ripBed) bird(mode, auth string) {
	b.t.Helper()
	need(b.t, "bird", "birdc")
	file := filepath.Join(b.dir, "bird.conf")
	text := fmt.Sprintf(b.static+birdRIP, pick(b.family, "rip", "rip ng"),
		pick(b.family, "version 2; "+mode+"; check zero yes;", ""), auth)
	text = birdID + strings.ReplaceAll(b.text(text), "ipv4", "ipv"+b.digit())
	require.NoError(b.t, os.WriteFile(file, []byte(text), 0o600))
	b.start(b.commandFor(2*patience, "bird", "-f", "-c", file, "-s", b.path("ctl"), "-P", b.path("pid")))
}

// birdc runs a command of BIRD's client. It returns "" while BIRD does not answer.
func (b *ripBed) birdc(words ...string) string {
	out, err := b.command("birdc", append([]string{"-s", b.path("ctl")}, words...)...).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// birdHas returns BIRD's route to a prefix: preference, metric and next hop in one line.
func (b *ripBed) birdHas(prefix string) string {
	return strings.Join(strings.Fields(b.birdc("show", "route", b.text(prefix), "all")), " ")
}

// birdUses reports whether BIRD has a route to a prefix through A.
func (b *ripBed) birdUses(prefix string) bool {
	return strings.Contains(b.birdHas(prefix), "via "+pick(b.family, gatewayIP, "fe80::1"))
}

// route returns a node's RIP route to a prefix, or the zero value.
func (b *ripBed) route(n *operator.Node, prefix string) control.RIPRoute {
	b.t.Helper()
	info := testenv.Ask(b.t, n, control.RIP{})
	for _, r := range info.Routes {
		if r.Prefix == netip.MustParsePrefix(b.text(prefix)) {
			return r
		}
	}
	return control.RIPRoute{}
}

// reaches reports whether a node has a route to a prefix with that metric.
func (b *ripBed) reaches(n *operator.Node, prefix string, metric int) bool {
	return b.route(n, prefix).Cost == metric
}

// RFC 2453: both sides learn routes with metrics and tags, the kernel's ping uses them, and a link
// that goes down on either side withdraws them.
func TestBIRDAndRIPv2(t *testing.T) { both(t, testBIRDAndRIPv2) }

func testBIRDAndRIPv2(t *testing.T, f family) {
	f.report(t, &row{peer: "BIRD", scenario: pick(f, "RIPv2", "RIPng") + ": routes, metrics and tags both ways, cuts"})
	b := newRIPBed(t, f, "")
	b.bird("mode multicast", "")

	b.until("BIRD's routes at B", func() bool {
		return b.reaches(b.beyond, "172.16.0.0/12", 3) && b.reaches(b.beyond, "192.168.0.0/16", 6)
	})
	assert.Equal(t, 77, b.route(b.beyond, "172.16.0.0/12").Tag)
	learned := b.route(b.router, "172.16.0.0/12")
	assert.True(t, learned.From == f.addr(kernelIP) || f.v6 && learned.From.IsLinkLocalUnicast(),
		"%v", learned.From)
	assert.Equal(t, "tun0", learned.Iface)
	assert.Equal(t, 2, learned.Cost)

	b.until("our routes at BIRD", func() bool {
		return b.birdUses("10.2.0.0/24") && b.birdUses("10.9.0.0/16")
	})
	assert.Contains(t, b.birdHas("10.0.0.0/24"), "RIP.metric: 2")
	assert.Contains(t, b.birdHas("10.2.0.0/24"), "RIP.metric: 3")
	assert.Contains(t, b.birdHas("10.9.0.0/16"), "RIP.metric: 7")
	assert.Contains(t, b.birdHas("10.9.0.0/16"), "RIP.tag: 04d2")
	b.until("the kernel's route", func() bool {
		return b.command("ping", "-c", "1", "-W", "1", f.ip(hostIP)).Run() == nil
	})

	t.Log("# a link behind A goes down")
	testenv.Ask(t, b.router, control.SetLink{Iface: "if0"})
	b.until("withdrawn from BIRD", func() bool {
		return !b.birdUses("10.2.0.0/24")
	})
	testenv.Ask(t, b.router, control.SetLink{Iface: "if0", Up: true})
	b.until("back at BIRD", func() bool {
		return b.birdUses("10.2.0.0/24")
	})

	t.Log("# a link behind BIRD goes down")
	require.Contains(t, b.birdc("disable", "elsewhere"), "disabled")
	b.until("withdrawn from B", func() bool {
		c := b.route(b.beyond, "172.16.0.0/12").Cost
		return c == 0 || c == 16
	})
	require.Contains(t, b.birdc("enable", "elsewhere"), "enabled")
	b.until("back at B", func() bool { return b.reaches(b.beyond, "172.16.0.0/12", 3) })

	info := testenv.Ask(t, b.router, control.RIP{})
	assert.Empty(t, info.Refused)
}

// RFC 2453 §4.1 and RFC 4822: we accept BIRD's authenticated messages, and BIRD accepts ours. There
// are 30 routes, which need two messages.
func TestBIRDAndAuthentication(t *testing.T) {
	var f family // RIPng has no authentication
	for _, tt := range []struct{ ours, auth string }{
		{"password tun0 tide", `authentication plaintext; password "tide";`},
		{"key tun0 1 md5 tide", `authentication cryptographic; password "tide" { id 1; algorithm keyed md5; };`},
		{"key tun0 7 hmac-sha1 tide", `authentication cryptographic; password "tide" { id 7; algorithm hmac sha1; };`},
		{"key tun0 255 hmac-sha256 tide", `authentication cryptographic; password "tide" { id 255; algorithm hmac sha256; };`},
		{"key tun0 1 hmac-sha384 tide", `authentication cryptographic; password "tide" { id 1; algorithm hmac sha384; };`},
		{"key tun0 1 hmac-sha512 tide", `authentication cryptographic; password "tide" { id 1; algorithm hmac sha512; };`},
	} {
		name := strings.Fields(tt.auth)[1]
		if words := strings.Fields(tt.ours); words[0] == "key" {
			name = words[3]
		}
		name = strings.TrimSuffix(name, ";")
		t.Run(name, func(t *testing.T) {
			f.report(t, &row{peer: "BIRD", scenario: "RIPv2: authentication, " + name})
			ours, lines := thirty(30)
			b := newRIPBed(t, f, "rip "+tt.ours+"\n"+lines)
			b.bird("mode multicast", tt.auth)
			b.until("BIRD's route at B", func() bool { return b.reaches(b.beyond, "172.16.0.0/12", 3) })
			b.until("our routes at BIRD", func() bool {
				learned := b.birdc("show", "route", "protocol", "tide")
				return strings.Contains(b.birdHas("10.2.0.0/24"), "RIP.metric: 3") &&
					!slices.ContainsFunc(ours, func(p string) bool { return !strings.Contains(learned, p) })
			})
		})
	}
}

// Both sides reject a wrong key, and our drop counter names the reason.
func TestBIRDAndAWrongKey(t *testing.T) {
	var f family // RIPng has no authentication
	for _, tt := range []struct{ name, ours, auth, want string }{
		{
			"wrong key", "key tun0 1 md5 ebb",
			`authentication cryptographic; password "tide" { id 1; algorithm keyed md5; };`, "wrong key",
		},
		{
			"another key id", "key tun0 2 md5 tide",
			`authentication cryptographic; password "tide" { id 1; algorithm keyed md5; };`, "unknown key id",
		},
		{"none at BIRD", "key tun0 1 md5 tide", "", "authentication missing"},
		{"wrong password", "password tun0 ebb", `authentication plaintext; password "tide";`, "wrong password"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f.report(t, &row{peer: "BIRD", scenario: "RIPv2: refused, " + tt.name})
			b := newRIPBed(t, f, "rip "+tt.ours+"\n")
			b.bird("mode multicast", tt.auth)
			refused := func() (n uint64) {
				info := testenv.Ask(t, b.router, control.RIP{})
				for _, r := range info.Refused {
					require.Equal(t, tt.want, r.Reason)
					n = r.Packets
				}
				return n
			}
			b.until("refusals", func() bool { return refused() >= 4 })
			assert.Zero(t, b.route(b.router, "172.16.0.0/12"))
			assert.NotContains(t, b.birdHas("10.2.0.0/24"), "via")
		})
	}
}

// RFC 2453 §3.6: a large table takes many messages. Here they are sent at a rate of 400 per second.
func TestBIRDAndALargeTable(t *testing.T) { both(t, testBIRDAndALargeTable) }

func testBIRDAndALargeTable(t *testing.T, f family) {
	f.report(t, &row{peer: "BIRD", scenario: pick(f, "RIPv2", "RIPng") + ": 10,000 routes learned, passed on, withdrawn"})
	b := newRIPBed(t, f, pick(f, "rip key tun0 1 md5 tide\n", ""))
	var routes strings.Builder
	const many = 10_000
	for i := range many {
		fmt.Fprintf(&routes, "\troute 20.%d.%d.0/24 blackhole;\n", i>>8, i&255)
	}
	b.static = strings.Replace(birdStatic, "\tipv4;\n", "\tipv4;\n"+routes.String(), 1)
	b.bird("mode multicast", pick(f,
		`authentication cryptographic; password "tide" { id 1; algorithm keyed md5; };`, ""))
	known := func(n *operator.Node) (count int) {
		info := testenv.Ask(t, n, control.RIP{})
		for _, r := range info.Routes {
			if r.From.IsValid() {
				count++
			}
		}
		return count
	}
	b.until("all of BIRD's routes at A", func() bool { return known(b.router) >= many })
	b.until("all of BIRD's routes at B", func() bool { return known(b.beyond) >= many })
	require.Contains(t, b.birdc("disable", "elsewhere"), "disabled")
	b.until("all withdrawn from B", func() bool { return known(b.beyond) < 10 })
}

// RFC 2453 §5.1: BIRD receives the broadcasts that we send for version 1. (BIRD itself does not
// broadcast on a TUN device.)
func TestBIRDAndBroadcast(t *testing.T) {
	var f family // RIPng has no version 1
	f.report(t, &row{peer: "BIRD", scenario: "RIPv2: we broadcast, BIRD multicasts"})
	b := newRIPBed(t, f, "rip interface tun0 send rip1-compatible\n")
	b.bird("mode multicast", "")
	b.until("BIRD's route at B", func() bool { return b.reaches(b.beyond, "192.168.0.0/16", 6) })
	b.until("our route at BIRD", func() bool {
		return strings.Contains(b.birdHas("10.2.0.0/24"), "RIP.metric: 3")
	})
}
