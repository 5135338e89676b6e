//go:build linux

package interop_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// negotiated are the options that ss shows for the kernel's connections with us: timestamps and
// window scaling (RFC 7323 §2 and §3), SACK (RFC 2018 §2) and ECN (RFC 3168 §6.1.1).
var negotiated = []string{"ts", "sack", "ecn", `wscale:\d+,\d+`}

// ss returns the kernel's report on its connections with C (-o includes the options).
func (b *bed) ss() string {
	b.t.Helper()
	return b.must(b.command("ss", "-Htino", "dst", b.host()))
}

func TestNegotiatedOptions(t *testing.T) { both(t, testNegotiatedOptions) }

func testNegotiatedOptions(t *testing.T, f family) {
	need(t, "ss")
	for name, weCall := range map[string]bool{"we call": true, "the kernel calls": false} {
		t.Run(name, func(t *testing.T) {
			f.report(t, &row{peer: "Linux", scenario: "ss -ti shows " + strings.Join(names(), " ") + ", " + name})
			b := newBed(t, f, 0, nil)
			b.set("tcp.ecn", "on") // we request ECN, as the kernel does here
			ours, kernels, err := b.pair(9000, weCall)
			require.NoError(t, err)
			defer ours.Close()
			defer kernels.Close()
			for _, way := range [][2]net.Conn{{ours, kernels}, {kernels, ours}} {
				_, err = way[0].Write(make([]byte, 100_000))
				require.NoError(t, err)
				_, err = io.ReadFull(way[1], make([]byte, 100_000))
				require.NoError(t, err)
			}
			said := b.ss()
			for _, f := range negotiated {
				assert.Regexp(t, `\s`+f+`\s`, said)
			}
			t.Log(said)
		})
	}
}

func names() []string {
	var list []string
	for _, f := range negotiated {
		name, _, _ := strings.Cut(f, ":")
		list = append(list, name)
	}
	return list
}

// The kernel offers fewer options. An option that one side does not offer is not used.
func TestOptionsNotOffered(t *testing.T) { both(t, testOptionsNotOffered) }

func testOptionsNotOffered(t *testing.T, f family) {
	need(t, "ss")
	for key, feature := range map[string]string{
		"tcp_timestamps": "ts", "tcp_sack": "sack", "tcp_window_scaling": `wscale:\d+,\d+`,
		"tcp_ecn": "ecn",
	} {
		t.Run(key, func(t *testing.T) {
			f.report(t, &row{peer: "Linux", scenario: fmt.Sprintf("net.ipv4.%s=0", key)})
			b := newBed(t, f, 0, nil)
			b.set("tcp.ecn", "on")
			b.sysctl("net/ipv4/"+key, "0")
			for i, weCall := range []bool{true, false} {
				ours, kernels, err := b.pair(9000+i, weCall)
				require.NoError(t, err)
				for _, way := range [][2]net.Conn{{ours, kernels}, {kernels, ours}} {
					go func() { _, _ = way[0].Write(make([]byte, 300_000)) }() // a failure shows in the read
					_, err = io.ReadFull(way[1], make([]byte, 300_000))
					require.NoError(t, err)
				}
				assert.NotRegexp(t, `\s`+feature+`\s`, b.ss())
				require.NoError(t, ours.Close())
				require.NoError(t, kernels.Close())
			}
		})
	}
}

// RFC 4987 §3.6: an end that answers with a SYN cookie stores nothing, but still negotiates the
// same options, because the timestamp carries them.
func TestCookiesKeepOptions(t *testing.T) { both(t, testCookiesKeepOptions) }

func testCookiesKeepOptions(t *testing.T, f family) {
	need(t, "ss")
	for name, weCall := range map[string]bool{"the kernel's": true, "ours": false} {
		t.Run(name, func(t *testing.T) {
			f.report(t, &row{peer: "Linux", scenario: "SYN cookies, " + name})
			b := newBed(t, f, 0, nil)
			b.sysctl("net/ipv4/tcp_syncookies", "2") // use cookies always
			b.set("tcp.syncookies", "always")
			ours, kernels := b.mustPair(9000, weCall)
			for _, f := range []string{"ts", "sack", `wscale:\d+,\d+`} {
				assert.Regexp(t, `\s`+f+`\s`, b.ss())
			}
			b.send(ours, kernels, 1_000_000)
		})
	}
}
