//go:build linux

package interop_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheKernelResolvesNames: dig and the C library resolve names by the server of a node behind a
// TUN device, over both versions of IP.
func TestTheKernelResolvesNames(t *testing.T) {
	need(t, "dig", "getent")
	b := &bed{t: t}
	b.namespace()
	text := "interface tun0 10.8.0.1/24 tun:" + device + " kernel 10.8.0.2 2001:db8:8::2\n" +
		"address tun0 2001:db8:8::1/64\ndns name R 10.8.0.1 2001:db8:8::1\n" +
		"dns name C 10.2.0.2 2001:db8:2::2\n"
	for i := range 100 {
		text += fmt.Sprintf("dns name many 10.9.0.%d\n", i+1)
	}
	b.openText("R", text, "")

	for _, server := range []string{"@10.8.0.1", "@2001:db8:8::1"} {
		dig := func(args ...string) string {
			return b.must(b.command("dig", append([]string{server, "+tries=1", "+time=10"}, args...)...))
		}
		for _, how := range []string{"+notcp", "+tcp", "+noedns", "+bufsize=512", "+cookie", "+dnssec"} {
			assert.Equal(t, "10.2.0.2\n", dig("+short", how, "c.INTERNAL"), how)
		}
		assert.Equal(t, "2001:db8:2::2\n", dig("+short", "C.internal", "AAAA"))
		assert.Equal(t, "C.internal.\n", dig("+short", "-x", "10.2.0.2"))
		assert.Equal(t, "C.internal.\n", dig("+short", "-x", "2001:db8:2::2"))
		assert.Equal(t, "R.internal.\n", dig("+short", "internal", "NS"))
		// A long answer is truncated, and dig repeats the query over TCP.
		assert.Equal(t, 100, strings.Count(dig("+short", "many.internal"), "\n"))
		assert.Contains(t, dig("many.internal", "+ignore"), "flags: qr aa tc rd;")
		assert.Contains(t, dig("x.internal"), "status: NXDOMAIN")
		nodata := dig("C.internal", "MX")
		assert.Contains(t, nodata, "status: NOERROR")
		assert.Contains(t, nodata, "SOA\tR.internal. hostmaster.internal.")
		assert.Contains(t, dig("example.com"), "status: REFUSED")
		assert.Contains(t, dig("internal", "AXFR"), "Transfer failed")
		assert.Contains(t, dig("+opcode=NOTIFY", "internal"), "status: NOTIMP")
		assert.Contains(t, dig("+edns=1", "+noednsnegotiation", "C.internal"), "status: BADVERS")
		assert.NotContains(t, dig("C.internal"), "malformed")
	}

	// ip-netns(8) shows this file as /etc/resolv.conf to programs in the namespace.
	folder := "/etc/netns/" + b.name
	require.NoError(t, os.MkdirAll(folder, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	require.NoError(t, os.WriteFile(folder+"/resolv.conf",
		[]byte("search internal\nnameserver 10.8.0.1\n"), 0o644))
	hosts := b.must(b.command("getent", "ahosts", "c"))
	assert.Contains(t, hosts, "10.2.0.2 ")
	assert.Contains(t, hosts, "2001:db8:2::2 ")
	assert.Contains(t, b.must(b.command("getent", "hosts", "10.2.0.2")), "C.internal")
}
