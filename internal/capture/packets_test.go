package capture_test

import (
	"net"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/require"
)

// gopacket builds the packets of these tests. It shares no code with the node, so the tests also
// find errors that the node's encoder and decoder have in common.

var (
	addrA = net.IPv4(10, 0, 0, 1)
	addrC = net.IPv4(10, 1, 0, 2)
)

func header(protocol uint8) *layers.IPv4 {
	return &layers.IPv4{
		Version: 4, TTL: 64, Protocol: layers.IPProtocol(protocol), SrcIP: addrA, DstIP: addrC,
	}
}

// header6 is like header, for IPv6 with a flow label.
func header6(next uint8) *layers.IPv6 {
	return &layers.IPv6{
		Version: 6, FlowLabel: 0x12345, HopLimit: 64, NextHeader: layers.IPProtocol(next),
		SrcIP: net.ParseIP("2001:db8::1"), DstIP: net.ParseIP("2001:db8:1::2"),
	}
}

// icmp6 is an ICMPv6 message between A and C: the rest of the header and the body follow the code.
func icmp6(tb testing.TB, kind, code uint8, rest ...[]byte) []byte {
	tb.Helper()
	return build(tb, header6(58), &layers.ICMPv6{
		TypeCode: layers.CreateICMPv6TypeCode(kind, code),
	}, gopacket.Payload(slices.Concat(rest...)))
}

// chained is an IPv6 packet whose payload has the extension headers that the caller built.
func chained(tb testing.TB, next uint8, rest ...[]byte) []byte {
	tb.Helper()
	return build(tb, header6(next), gopacket.Payload(slices.Concat(rest...)))
}

func network(part gopacket.SerializableLayer) gopacket.NetworkLayer {
	return part.(gopacket.NetworkLayer)
}

// build serializes the layers with lengths and checksums filled in.
func build(tb testing.TB, parts ...gopacket.SerializableLayer) []byte {
	tb.Helper()
	for _, p := range parts {
		switch p := p.(type) {
		case *layers.TCP:
			require.NoError(tb, p.SetNetworkLayerForChecksum(network(parts[0])))
		case *layers.ICMPv6:
			require.NoError(tb, p.SetNetworkLayerForChecksum(network(parts[0])))
		case *layers.UDP:
			require.NoError(tb, p.SetNetworkLayerForChecksum(network(parts[0])))
		}
	}
	buf := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	require.NoError(tb, gopacket.SerializeLayers(buf, options, parts...))
	return buf.Bytes()
}

// segment is a TCP segment of n payload bytes from A to C.
func segment(tb testing.TB, tcp layers.TCP, n int) []byte {
	tb.Helper()
	tcp.SrcPort, tcp.DstPort = 33000, 80
	return build(tb, header(6), &tcp, gopacket.Payload(make([]byte, n)))
}

func option(kind layers.TCPOptionKind, data ...byte) layers.TCPOption {
	return layers.TCPOption{OptionType: kind, OptionLength: uint8(len(data) + 2), OptionData: data}
}

// options returns the options of a SYN as most hosts send it.
func options() []layers.TCPOption {
	return []layers.TCPOption{
		option(layers.TCPOptionKindMSS, 0x05, 0x50),
		option(layers.TCPOptionKindSACKPermitted),
		option(layers.TCPOptionKindTimestamps, 0, 0, 0, 7, 0, 0, 0, 0),
		{OptionType: layers.TCPOptionKindNop, OptionLength: 1},
		option(layers.TCPOptionKindWindowScale, 7),
	}
}
