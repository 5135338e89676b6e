package e2e_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	longruns "github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/test/internal/peer"
)

// lengths returns the sizes of the files that each peer receives and sends.
func lengths() []int64 {
	if longruns.Long() {
		return []int64{1, 1000, 100_000, megabyte, 10 * megabyte}
	}
	return []int64{1, 1000, 100_000}
}

// eachClosing runs f for every kind of peer and every loss rate.
func eachClosing(t *testing.T, f func(*testing.T, peer.Quirks)) {
	t.Helper()
	for name, quirks := range peer.Closing {
		for _, loss := range []float64{0, 0.02} {
			quirks.Loss, quirks.ISS = loss, 20238
			t.Run(fmt.Sprintf("%s at %.0f%%", name, 100*loss), func(t *testing.T) {
				t.Parallel()
				f(t, quirks)
			})
		}
	}
}

func TestFilesToCourseNodes(t *testing.T) {
	t.Parallel()
	eachClosing(t, func(t *testing.T, quirks peer.Quirks) {
		n, wire := startWithPeer(t)
		for i, size := range lengths() {
			h := peer.New(wire, theirs, quirks)
			port := uint16(7000 + i)
			file := RandomFile(t, size, 42)
			mark := n.Mark()
			n.Command("sendfile %s %v %d --json", file, theirs, port)
			came, err := h.Accept(port, nil, patience)
			require.NoError(t, err, "%d bytes", size)
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(want, came), "got %d bytes, want %d", len(came), len(want))
			n.Transferred(mark, file, patience)
			assert.Zero(t, h.Stats.DataFINs, "segments with data and a FIN")
			assert.Zero(t, h.Stats.Discarded, "bytes unread when the FIN arrived")
			assert.Zero(t, h.Stats.Options, "segments with options")
			if i > 0 {
				assert.Zero(t, h.Stats.OptionSYNs, "SYNs with options to a peer without options")
			}
			t.Logf("%d bytes: %+v", size, h.Stats)
		}
	})
}

func TestFilesFromCourseNodes(t *testing.T) {
	t.Parallel()
	eachClosing(t, func(t *testing.T, quirks peer.Quirks) {
		n, wire := startWithPeer(t)
		for i, size := range lengths() {
			h := peer.New(wire, theirs, quirks)
			port := uint16(7000 + i)
			want, err := os.ReadFile(RandomFile(t, size, 43))
			require.NoError(t, err)
			target := fmt.Sprintf("%s/target-%d", t.TempDir(), size)
			mark := n.Mark()
			n.Receive(target, int(port))
			_, err = h.Connect(netip.AddrPortFrom(ours, port), want, patience)
			require.NoError(t, err, "%d bytes", size)
			n.Transferred(mark, target, patience)
			came, err := os.ReadFile(target)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(want, came), "got %d bytes, want %d", len(came), len(want))
			assert.Zero(t, h.Stats.DataFINs, "segments with data and a FIN")
			assert.Zero(t, h.Stats.Options, "segments with options")
		}
	})
}

// Some nodes crash when they receive an ICMP error, some when they receive a reset. Options
// suppress both; pings are still answered.
func TestSwitchesForNodesThatCrash(t *testing.T) {
	for name, how := range map[string]struct {
		directives, commands []string
		provoked             []uint8
	}{
		"on":    {nil, nil, []uint8{peer.ProtoTCP, protoICMP}},
		"file":  {[]string{"icmp errors off", "tcp rst off"}, nil, nil},
		"shell": {nil, []string{"set icmp.errors off", "set tcp.rst off"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, wire := startWithPeer(t, how.directives...)
			for _, c := range how.commands {
				n.MustDo("%s", c)
			}
			send := func(proto uint8, payload []byte) {
				wire.SendPacket(peer.Packet{TTL: 16, Proto: proto, Src: theirs, Dst: ours, Payload: payload})
			}
			syn := peer.Segment{SrcPort: 40000, DstPort: 9999, Flags: peer.SYN, Window: 65535}
			send(peer.ProtoTCP, syn.Bytes(theirs, ours))
			send(99, []byte("no such protocol"))
			var got []uint8
			// A reset may arrive after the first reply, but not after the second.
			for range 2 {
				send(protoICMP, []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0})
				for until := time.Now().Add(Soon); ; {
					p, ok := wire.Receive(until)
					require.True(t, ok, "no echo reply")
					if p.Proto == protoICMP && p.Payload[0] == 0 {
						break
					}
					got = append(got, p.Proto)
				}
			}
			assert.ElementsMatch(t, how.provoked, got)
		})
	}
}

const protoICMP = 1
