package capture_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/capture"
)

func describe(packet []byte) string { return string(capture.Describe(nil, packet)) }

func TestDescribeTCP(t *testing.T) {
	sack := append([]layers.TCPOption{
		{OptionType: layers.TCPOptionKindNop, OptionLength: 1},
		{OptionType: layers.TCPOptionKindNop, OptionLength: 1},
	}, option(layers.TCPOptionKindSACK, 0, 0, 0, 1, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0))
	tests := map[string]struct {
		tcp     layers.TCP
		payload int
		want    string
	}{
		"syn with options": {
			layers.TCP{SYN: true, Seq: 1000, Window: 65535, Options: options()},
			0, "Flags [S], seq 1000, win 65535, " +
				"options [mss 1360,sackOK,TS val 7 ecr 0,nop,wscale 7], length 0",
		},
		"syn-ack, plain": {
			layers.TCP{SYN: true, ACK: true, Seq: 1, Ack: 2, Window: 512},
			0, "Flags [S.], seq 1, ack 2, win 512, length 0",
		},
		"data": {
			layers.TCP{PSH: true, ACK: true, Seq: 1, Ack: 2, Window: 512},
			100, "Flags [P.], seq 1:101, ack 2, win 512, length 100",
		},
		"data across the wrap": {
			layers.TCP{ACK: true, Seq: 0xffffffff, Ack: 2, Window: 512},
			100, "Flags [.], seq 4294967295:99, ack 2, win 512, length 100",
		},
		"duplicate ack with sack": {
			layers.TCP{ACK: true, Seq: 1, Ack: 4294967295, Options: sack},
			0, "Flags [.], seq 1, ack 4294967295, win 0, " +
				"options [nop,nop,sack 2 {1:9}{4294967295:0}], length 0",
		},
		"reset without ack": {
			layers.TCP{RST: true, Seq: 5, Ack: 6},
			0, "Flags [R], seq 5, win 0, length 0",
		},
		"urgent": {
			layers.TCP{URG: true, ACK: true, Urgent: 3},
			4, "Flags [.U], seq 0:4, ack 0, win 0, urg 3, length 4",
		},
		"all flags": {
			layers.TCP{
				FIN: true, SYN: true, RST: true, PSH: true, ACK: true, URG: true, ECE: true, CWR: true,
			},
			0, "Flags [FSRP.UEW], seq 0, ack 0, win 0, urg 0, length 0",
		},
		"no flag": {layers.TCP{}, 0, "Flags [none], seq 0, win 0, length 0"},
		"an unknown option": {
			layers.TCP{SYN: true, Options: []layers.TCPOption{option(200, 1, 2)}},
			0, "Flags [S], seq 0, win 0, options [option 200 of 4], length 0",
		},
		"a known option of a wrong length": {
			layers.TCP{SYN: true, Options: []layers.TCPOption{option(layers.TCPOptionKindWindowScale, 1, 2)}},
			0, "Flags [S], seq 0, win 0, options [option 3 of 4], length 0",
		},
		"end of options": {
			layers.TCP{SYN: true, Options: []layers.TCPOption{
				option(layers.TCPOptionKindWindowScale, 7), {OptionType: 0, OptionLength: 1},
			}},
			0, "Flags [S], seq 0, win 0, options [wscale 7,eol], length 0",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := describe(segment(t, tt.tcp, tt.payload))
			assert.Equal(t, "IP 10.0.0.1.33000 > 10.1.0.2.80: "+tt.want, got)
		})
	}
}

func TestDescribeOtherProtocols(t *testing.T) {
	text := func(s string) gopacket.Payload { return gopacket.Payload(s) }
	icmp := func(kind, code uint8) *layers.ICMPv4 {
		return &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(kind, code), Id: 7, Seq: 576}
	}
	quoted := text(string(segment(t, layers.TCP{SYN: true}, 0)[:28]))
	rip := func(words ...uint32) gopacket.Payload {
		b := []byte{0, 2, 0, byte(words[0])}
		for _, w := range words[1:] {
			b = binary.BigEndian.AppendUint32(b, w)
		}
		return b
	}
	const net0, net1, slash24 = 0x0a000000, 0x0a010000, 0xffffff00
	tests := map[string]struct {
		protocol uint8
		parts    []gopacket.SerializableLayer
		want     string
	}{
		"test":       {0, []gopacket.SerializableLayer{text("hello \x1b[2J")}, `test, ttl 64, length 10: "hello \x1b[2J"`},
		"empty test": {0, nil, `test, ttl 64, length 0: ""`},
		"long test": {
			0,
			[]gopacket.SerializableLayer{text("0123456789012345678901234567890123456789")},
			`test, ttl 64, length 40: "01234567890123456789012345678901"...`,
		},
		"udp": {17, []gopacket.SerializableLayer{
			&layers.UDP{SrcPort: 520, DstPort: 53}, text("hello"),
		}, "UDP, length 5"},
		"echo":       {1, []gopacket.SerializableLayer{icmp(8, 0), text("abc")}, "ICMP echo request, id 7, seq 576, length 11"},
		"echo reply": {1, []gopacket.SerializableLayer{icmp(0, 0)}, "ICMP echo reply, id 7, seq 576, length 8"},
		"time exceeded": {
			1,
			[]gopacket.SerializableLayer{icmp(11, 0), quoted},
			"ICMP time exceeded in-transit, length 36",
		},
		"reassembly": {
			1,
			[]gopacket.SerializableLayer{icmp(11, 1), quoted},
			"ICMP time exceeded in reassembly, length 36",
		},
		"net":  {1, []gopacket.SerializableLayer{icmp(3, 0), quoted}, "ICMP net 10.1.0.2 unreachable, length 36"},
		"host": {1, []gopacket.SerializableLayer{icmp(3, 1), quoted}, "ICMP host 10.1.0.2 unreachable, length 36"},
		"protocol": {
			1,
			[]gopacket.SerializableLayer{icmp(3, 2), quoted},
			"ICMP 10.1.0.2 protocol 6 unreachable, length 36",
		},
		"port": {1, []gopacket.SerializableLayer{icmp(3, 3), quoted}, "ICMP 10.1.0.2 tcp port 80 unreachable, length 36"},
		"port, quote without one": {
			1,
			[]gopacket.SerializableLayer{icmp(3, 3), quoted[:20]},
			"ICMP 10.1.0.2 tcp port unreachable, length 28",
		},
		"need to fragment": {
			1,
			[]gopacket.SerializableLayer{icmp(3, 4), quoted},
			"ICMP 10.1.0.2 unreachable - need to frag (mtu 576), length 36",
		},
		"prohibited": {
			1,
			[]gopacket.SerializableLayer{icmp(3, 13), quoted},
			"ICMP host 10.1.0.2 unreachable - admin prohibited filter, length 36",
		},
		"unreachable, no quote": {
			1,
			[]gopacket.SerializableLayer{icmp(3, 1)},
			"ICMP unreachable code 1, length 8",
		},
		"code": {
			1,
			[]gopacket.SerializableLayer{icmp(3, 12), quoted},
			"ICMP 10.1.0.2 code 12 unreachable, length 36",
		},
		"source route": {
			1,
			[]gopacket.SerializableLayer{icmp(3, 5), quoted},
			"ICMP 10.1.0.2 unreachable - source route failed, length 36",
		},
		"parameter problem": {
			1,
			[]gopacket.SerializableLayer{icmp(12, 0), quoted},
			"ICMP parameter problem - octet 0, length 36",
		},
		"timestamp": {
			1,
			[]gopacket.SerializableLayer{icmp(13, 0), text("abcdefghijkl")},
			"ICMP time stamp query, id 7, seq 576, length 20",
		},
		"timestamp reply": {
			1,
			[]gopacket.SerializableLayer{icmp(14, 0), text("abcdefghijkl")},
			"ICMP time stamp reply, id 7, seq 576, length 20",
		},
		"redirect": {1, []gopacket.SerializableLayer{icmp(5, 1), quoted}, "ICMP type 5 code 1, length 36"},
		"rip request": {
			200,
			[]gopacket.SerializableLayer{text("\x00\x01\x00\x00")},
			"RIP request, entries 0, length 4",
		},
		"rip response": {
			200,
			[]gopacket.SerializableLayer{rip(2, 1, net0, slash24, 16, net1, 0xffff00ff)},
			"RIP response, entries 2, length 28: 10.0.0.0/24 cost 1, 10.1.0.0/255.255.0.255 cost 16",
		},
		"rip, entries of 8 bytes": {
			200,
			[]gopacket.SerializableLayer{rip(2, 1, net0+1, 4294967295, net1)},
			"RIP response, entries 2, length 20: 10.0.0.1/32 cost 1, 10.1.0.0/32 cost 4294967295",
		},
		"rip, default route and many": {
			200,
			[]gopacket.SerializableLayer{rip(5, 1, 0, 0, 1, net0, slash24, 1, net0, slash24, 1, net0, slash24, 1, net0, slash24)},
			"RIP response, entries 5, length 64: 0.0.0.0/0 cost 1, " +
				"10.0.0.0/24 cost 1, 10.0.0.0/24 cost 1, 10.0.0.0/24 cost 1, ...",
		},
		"rip, wrong count": {
			200,
			[]gopacket.SerializableLayer{rip(64, 1, net0, slash24)},
			"RIP response, entries 64, length 16 [bad length]",
		},
		"rip, unknown command": {
			200,
			[]gopacket.SerializableLayer{text("\x00\x09\x00\x00")},
			"RIP command 9, entries 0, length 4",
		},
		"unknown protocol": {99, []gopacket.SerializableLayer{text("abc")}, "proto 99, length 3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			parts := append([]gopacket.SerializableLayer{header(tt.protocol)}, tt.parts...)
			from, to := "IP 10.0.0.1", "10.1.0.2"
			if tt.protocol == 17 {
				from, to = from+".520", to+".53"
			}
			assert.Equal(t, from+" > "+to+": "+tt.want, describe(build(t, parts...)))
		})
	}
}

func TestDescribeMalformedPackets(t *testing.T) {
	data := segment(t, layers.TCP{ACK: true, PSH: true, Options: options()}, 100)
	const line = "IP 10.0.0.1.33000 > 10.1.0.2.80: Flags [P.], seq 0:100, ack 0, win 0, " +
		"options [mss 1360,sackOK,TS val 7 ecr 0,nop,wscale 7], length 100"
	require.Equal(t, line, describe(data))
	udp := build(t, header(17), &layers.UDP{SrcPort: 1, DstPort: 2})
	ping := build(t, header(1), &layers.ICMPv4{
		TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0), Id: 7, Seq: 1,
	})
	entry := "\x00\x00\x00\x01\x0a\x00\x00\x00\xff\xff\xff\x00"
	rip := build(t, header(200), gopacket.Payload("\x00\x02\x00\x02"+entry+entry))
	broken := func(change func(b []byte)) []byte {
		b := bytes.Clone(data)
		change(b)
		return b
	}
	resum := func(b []byte) { // keeps the checksum valid, so that the line shows only the change
		b[10], b[11] = 0, 0
		var s uint32
		for i := 0; i < 20; i += 2 {
			s += uint32(binary.BigEndian.Uint16(b[i:]))
		}
		s = s>>16 + s&0xffff
		binary.BigEndian.PutUint16(b[10:], ^uint16(s>>16+s))
	}
	tests := map[string]struct {
		packet []byte
		want   string
	}{
		"empty":     {nil, "IP [|ip], length 0"},
		"19 bytes":  {data[:19], "IP [|ip], length 19"},
		"version 5": {broken(func(b []byte) { b[0] = 0x55 }), "IP version 5, length 160"},
		"header length 16": {
			broken(func(b []byte) { b[0] = 0x44 }),
			"IP 10.0.0.1 > 10.1.0.2: bad header length 16",
		},
		"header length 60": {
			broken(func(b []byte) { b[0] = 0x4f })[:40],
			"IP 10.0.0.1 > 10.1.0.2: bad header length 60",
		},
		"header only": {data[:60], line},
		"cut in the options": {
			data[:50],
			"IP 10.0.0.1.33000 > 10.1.0.2.80: Flags [P.], seq 0:100, ack 0, win 0, [|tcp]",
		},
		"cut in the header":   {data[:39], "IP 10.0.0.1 > 10.1.0.2: [|tcp]"},
		"bad header checksum": {broken(func(b []byte) { b[8]-- }), line + " [bad header checksum]"},
		"bad TCP checksum":    {broken(func(b []byte) { b[159]++ }), line + " [bad checksum]"},
		"bytes after the end": {append(bytes.Clone(data), 1, 2, 3), line},
		"TCP header length 16": {
			broken(func(b []byte) { b[32] = 0x40 }),
			"IP 10.0.0.1.33000 > 10.1.0.2.80: Flags [P.], bad header length 16",
		},
		"option of length 0": {
			broken(func(b []byte) { b[41] = 0 }),
			"IP 10.0.0.1.33000 > 10.1.0.2.80: Flags [P.], seq 0:100, ack 0, win 0, " +
				"options [bad length of 2], length 100 [bad checksum]",
		},
		"UDP shorter than its header": {
			append(bytes.Clone(udp[:24]), 0, 7, 0, 0),
			"IP 10.0.0.1.1 > 10.1.0.2.2: UDP, bad length 7",
		},
		"UDP cut":  {udp[:27], "IP 10.0.0.1 > 10.1.0.2: [|udp]"},
		"ICMP cut": {ping[:27], "IP 10.0.0.1 > 10.1.0.2: [|icmp]"},
		"ICMP checksum": {
			append(bytes.Clone(ping[:27]), 9),
			"IP 10.0.0.1 > 10.1.0.2: ICMP echo request, id 7, seq 9, length 8 [bad checksum]",
		},
		"RIP cut": {rip[:23], "IP 10.0.0.1 > 10.1.0.2: [|rip]"},
		"RIP cut in an entry": {
			rip[:40],
			"IP 10.0.0.1 > 10.1.0.2: RIP response, entries 2, length 28: 10.0.0.0/24 cost 1 [|rip]",
		},
		"first fragment": {
			broken(func(b []byte) { b[4], b[5], b[6] = 1, 2, 0x20; resum(b) }),
			line + " [fragment id 258 offset 0+]",
		},
		"middle fragment": {
			broken(func(b []byte) { b[6], b[7] = 0x20, 2; resum(b) }),
			"IP 10.0.0.1 > 10.1.0.2: tcp, length 140 [fragment id 0 offset 16+]",
		},
		"last fragment": {
			broken(func(b []byte) { b[6], b[7] = 0, 2; resum(b) }),
			"IP 10.0.0.1 > 10.1.0.2: tcp, length 140 [fragment id 0 offset 16]",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, describe(tt.packet))
		})
	}
}

func TestDescribeAllocatesNothing(t *testing.T) {
	data := segment(t, layers.TCP{ACK: true, PSH: true, Options: options()}, 100)
	text := build(t, header(0), gopacket.Payload("0123456789012345678901234567890123456789"))
	line := make([]byte, 0, 512)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		line = capture.Describe(line[:0], data)
		line = capture.Describe(line[:0], text)
	}))
}

// For every packet, the line is short, printable ASCII, and is appended to the contents of dst.
func FuzzDescribe(f *testing.F) {
	for _, name := range []layers.TCP{
		{SYN: true, Options: options()}, {ACK: true, PSH: true}, {FIN: true, ACK: true},
	} {
		f.Add(segment(f, name, 10))
	}
	f.Add(build(f, header(0), gopacket.Payload("hello")))
	f.Add(build(f, header(200), gopacket.Payload("\x00\x02\x00\x01\x00\x00\x00\x01\x0a\x00\x00\x00\xff\xff\xff\x00")))
	f.Add(build(f, header(17), &layers.UDP{SrcPort: 1, DstPort: 2}, gopacket.Payload("x")))
	for _, l := range lines6(f) {
		f.Add([]byte(l.packet))
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		before := bytes.Clone(packet)
		line := capture.Describe([]byte("12:00 "), packet)
		require.True(t, bytes.HasPrefix(line, []byte("12:00 IP")), "%q", line)
		require.Equal(t, before, packet)
		require.Less(t, len(line), 500, "%q", line)
		for _, c := range line {
			require.True(t, c >= ' ' && c <= '~', "%q", line)
		}
		shown := make([]byte, 0, 512)
		for cut := range min(len(packet), 128) { // cuts within the headers
			shown = capture.Describe(shown[:0], packet[:cut])
		}
	})
}
