package capture_test

import (
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/capture"
)

// sample is a packet for the tests of filters, with its metadata.
type sample struct {
	packet  []byte
	iface   string
	out     bool
	dropped bool
}

// samples are packets by name. The table below lists the names that each filter accepts.
func samples(tb testing.TB) map[string]sample {
	tb.Helper()
	syn := segment(tb, layers.TCP{SYN: true, Options: options()}, 0)
	synack := segment(tb, layers.TCP{SYN: true, ACK: true}, 0)
	data := segment(tb, layers.TCP{ACK: true, PSH: true}, 1000)
	back := header(6)
	back.SrcIP, back.DstIP = addrC, addrA
	fin := build(tb, back, &layers.TCP{SrcPort: 80, DstPort: 33000, FIN: true, ACK: true},
		gopacket.Payload(nil))
	dns := build(tb, header(17), &layers.UDP{SrcPort: 4000, DstPort: 53}, gopacket.Payload("query"))
	rip2 := build(tb, header(17), &layers.UDP{SrcPort: 520, DstPort: 520}, gopacket.Payload("rip"))
	late := header(17)
	late.FragOffset = 100
	return map[string]sample{
		"syn":    {syn, "if0", true, false},
		"synack": {synack, "if0", true, false},
		"data":   {data, "if1", true, true},
		"fin":    {fin, "if1", false, false},
		"dns":    {dns, "if0", true, false},
		"rip2":   {rip2, "if0", false, false},
		"rip":    {build(tb, header(200), gopacket.Payload("....")), "if0", false, false},
		"ping": {build(tb, header(1), &layers.ICMPv4{
			TypeCode: layers.CreateICMPv4TypeCode(8, 0),
		}), "if0", true, false},
		"test":     {build(tb, header(0), gopacket.Payload("hello")), "if0", true, false},
		"fragment": {build(tb, late, gopacket.Payload("....")), "if0", true, false},
		"garbage":  {[]byte{0xfe, 1, 2}, "if0", false, true},
	}
}

const everything = "data dns fin fragment garbage ping rip rip2 syn synack test"

// TestFilters lists the packets that each filter accepts.
func TestFilters(t *testing.T) {
	for _, tt := range []struct{ filter, want string }{
		{"", everything},
		{"ip", "data dns fin fragment ping rip rip2 syn synack test"},
		{"tcp", "data fin syn synack"},
		{"udp", "dns fragment rip2"},
		{"icmp", "ping"},
		{"rip", "rip rip2"},
		{"test", "test"},
		{"proto 200", "rip"},
		{"ip proto tcp", "data fin syn synack"},
		{`ip proto \tcp`, "data fin syn synack"},
		{"proto 6 or proto 1", "data fin ping syn synack"},
		{"host 10.0.0.1", "data dns fin fragment ping rip rip2 syn synack test"},
		{"src host 10.0.0.1", "data dns fragment ping rip rip2 syn synack test"},
		{"src 10.0.0.1 and tcp", "data syn synack"},
		{"dst host 10.0.0.1", "fin"},
		{"10.1.0.2 and icmp", "ping"},
		{"ip host 10.0.0.1 and icmp", "ping"},
		{"src or dst host 10.0.0.1 and icmp", "ping"},
		{"src and dst net 10.0.0.0/8 and icmp", "ping"},
		{"host 10.0.0.9", ""},
		{"net 10.1.0.0/16 and icmp", "ping"},
		{"net 10.1", "data dns fin fragment ping rip rip2 syn synack test"},
		{"src net 10.1", "fin"},
		{"src net 10.1.0.0 mask 255.255.0.0", "fin"},
		{"net 0.0.0.0/0 and test", "test"},
		{"port 80", "data fin syn synack"},
		{"src port 80", "fin"},
		{"tcp dst port 80", "data syn synack"},
		{"udp port 80", ""},
		{"port 53 or 520", "dns rip2"},
		{"port 53 or 10.1.0.2 and fin", "fin"},
		{"portrange 50-60", "dns"},
		{"udp portrange 500-600", "rip2"},
		{"src or dst port 53", "dns"},
		{"src and dst port 520", "rip2"},
		{"less 30", "fragment garbage ping rip test"},
		{"greater 1000", "data"},
		{"in", "fin garbage rip rip2"},
		{"outbound and tcp", "data syn synack"},
		{"ifname if1", "data fin"},
		{"on if1 and in", "fin"},
		{"drop", "data garbage"},
		{"not drop and tcp", "fin syn synack"},
		{"syn", "syn synack"},
		{"tcp[syn]", "syn synack"},
		{"tcp[syn,fin]", "fin syn synack"},
		{"tcp[syn|fin]", "fin syn synack"},
		{"tcp-fin", "fin"},
		{"fin or rst", "fin"},
		{"psh && ack", "data"},
		{"tcp[tcpflags] & tcp-syn != 0", "syn synack"},
		{"tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn", "syn"},
		{"tcp[tcpflags] == tcp-syn", "syn"},
		{"tcp[13] & 2 != 0", "syn synack"},
		{"tcp[tcpflags] = 0x12", "synack"},
		{"tcp[tcpflags] & (tcp-syn|tcp-fin) = 0", "data"},
		{"! tcp and ! udp && ip", "ping rip test"},
		{"not not icmp", "ping"},
		{"not (tcp or udp or icmp)", "garbage rip test"},
		// As in pcap-filter(7), both have the same precedence, from left to right.
		{"icmp or tcp and drop", "data"},
		{"icmp or (tcp and drop)", "data ping"},
		{"((((icmp))))", "ping"},
	} {
		f, err := capture.ParseFilter(tt.filter)
		require.NoError(t, err, tt.filter)
		var passed []string
		all := samples(t)
		for name := range strings.FieldsSeq(everything) {
			s := all[name]
			facts := capture.Facts{
				Iface: s.iface, Out: s.out, Dropped: s.dropped, Length: len(s.packet),
			}
			facts.Parse(s.packet[:min(len(s.packet), capture.HeaderBytes)])
			if f.Match(&facts) {
				passed = append(passed, name)
			}
		}
		assert.Equal(t, tt.want, strings.Join(passed, " "), tt.filter)
	}
}

// TestInvalidFilters checks that the error gives the reason, and that a caret marks the position.
func TestInvalidFilters(t *testing.T) {
	for _, tt := range []struct {
		filter string
		at     int
		what   string
	}{
		{"tcp port x", 9, `expected a port from 0 to 65535 after "port", not "x"`},
		{"tcp port", 8, `not the end`},
		{"port 70000", 5, `expected a port`},
		{"port 80-90", 5, `expected a port`},
		{"portrange 90-80", 10, `expected ports like 8000-8010`},
		{"portrange 80", 10, `expected ports like`},
		{"tcp and", 7, "the filter is incomplete"},
		{"tpc port 80", 0, `"tpc" is neither a keyword nor an address`},
		{"host 10.0.0", 5, "expected an IP address"},
		{"ip host ::1", 8, "expected an IPv4 address"},
		{"net 10.1.2.0/16", 4, "has bits beyond the prefix length"},
		{"net 10.0.0.0/33", 4, "expected a network like 10.1.0.0/16"},
		{"net 10.0.0.0 mask x", 18, "expected a mask like 255.255.0.0"},
		{"src or host 10.0.0.1", 7, "expected dst here"},
		{"(tcp or udp", 0, "this ( is not closed"},
		{"tcp)", 3, "this ) has no matching ("},
		{"tcp udp", 4, `"udp": expected "and", "or" or the end`},
		{"tcp[sny]", 4, "expected flags (syn, fin"},
		{"tcp[syn", 3, "this [ is not closed"},
		{"tcp[tcpflags] & tcp-syn", 23, "expected a comparison"},
		{"tcp[tcpflags] & 999 != 0", 16, "expected flags like tcp-syn"},
		{"tcp[tcpflags] & (tcp-syn != 0", 16, "this ( is not closed"},
		{"less x", 5, `expected a number from 0 to 65535 after "less"`},
		{"proto 300", 6, "expected a protocol"},
		{"ifname", 6, "expected the name of an interface"},
		{"ether host 1", 0, "neither a keyword"},
		{"tcp # no", 4, `unexpected "#"`},
		{strings.Repeat("(", 80) + "tcp", 64, "more than 64 deep"},
		{strings.Repeat("x", 2000), 1024, "longer than 1024 bytes"},
	} {
		_, err := capture.ParseFilter(tt.filter)
		var wrong *capture.FilterError
		require.ErrorAs(t, err, &wrong, tt.filter)
		assert.Equal(t, tt.at, wrong.At, tt.filter)
		assert.Contains(t, wrong.What, tt.what, tt.filter)
		assert.True(t, strings.HasSuffix(err.Error(), "\n  "+strings.Repeat(" ", tt.at)+"^"), err)
	}
}

func TestFilterAllocatesNothing(t *testing.T) {
	f, err := capture.ParseFilter("tcp port 80 and not host 10.0.0.9 and (syn or greater 40)")
	require.NoError(t, err)
	packet := segment(t, layers.TCP{SYN: true}, 0)
	var facts capture.Facts
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		facts.Parse(packet)
		facts.Length = len(packet)
		require.True(t, f.Match(&facts))
	}))
}

func FuzzFilter(f *testing.F) {
	for _, text := range []string{
		"tcp port 80 and not host 10.0.0.1", "tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn",
		"port 53 or 520", "ip6 net 2001:db8::/32 or port 80", "icmp6", "net ::/0", "net 10.1.0.0 mask 255.255.0.0", "!(src or dst 10.0.0.1)", "drop && in",
	} {
		f.Add(text, []byte("\x45\x00\x00\x28\x00\x00\x00\x00\x40\x06"))
	}
	f.Fuzz(func(t *testing.T, text string, packet []byte) {
		filter, err := capture.ParseFilter(text)
		if err != nil {
			var wrong *capture.FilterError
			require.ErrorAs(t, err, &wrong)
			require.LessOrEqual(t, wrong.At, len(text))
			return
		}
		facts := capture.Facts{Length: len(packet)}
		facts.Parse(packet)
		filter.Match(&facts)
	})
}
