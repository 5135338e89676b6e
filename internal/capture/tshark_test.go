package capture_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/capture"
)

func TestTsharkReadsTheFile(t *testing.T) {
	path, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("skip: needs tshark")
	}
	var file bytes.Buffer
	w, err := capture.New(&file, interfaces, 0)
	require.NoError(t, err)
	syn := segment(t, layers.TCP{SYN: true, Seq: 1000, Window: 65535, Options: options()}, 0)
	data := segment(t, layers.TCP{ACK: true, PSH: true, Seq: 1001, Ack: 500, Window: 512}, 100)
	ping := build(t, header(1), &layers.ICMPv4{
		TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0), Id: 7, Seq: 1,
	}, gopacket.Payload("hello"))
	garbage := bytes.Repeat([]byte{0xfe}, 40)
	require.NoError(t, w.Packet(noon, 0, capture.Outbound, "", syn))
	require.NoError(t, w.Packet(noon+1, 1, capture.Inbound, "", data[:40], data[40:]))
	require.NoError(t, w.Packet(noon+2, 1, capture.Inbound, "", ping))
	require.NoError(t, w.Drop(noon+3, 0, capture.Inbound, "version", garbage))
	require.NoError(t, w.Flush())

	cmd := exec.Command(path, "-r", "-", "-n", "-o", "tcp.check_checksum:TRUE",
		"-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=|",
		"-e", "frame.interface_name", "-e", "frame.interface_description",
		"-e", "frame.time_epoch", "-e", "frame.comment",
		"-e", "ip.checksum.status", "-e", "tcp.checksum.status", "-e", "tcp.len",
		"-e", "icmp.seq", "-e", "_ws.malformed")
	cmd.Stdin = &file
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), stderr.String())
	assert.Equal(t, []string{
		"if0|10.0.0.1/24|1795262400.123456789||1|1|0||",
		"if1|10.2.0.1/24|1795262400.123456790||1|1|100||",
		"if1|10.2.0.1/24|1795262400.123456791||1|||1|",
		"if0|10.0.0.1/24|1795262400.123456792|dropped: version|||||",
	}, strings.FieldsFunc(stdout.String(), func(r rune) bool { return r == '\n' || r == '\r' }))
}
