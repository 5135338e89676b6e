package nat_test

import (
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/nat"
)

var mirror = nat.Reflector{
	Addrs: [2]netip.Addr{netip.MustParseAddr("10.5.0.2"), netip.MustParseAddr("10.6.0.2")},
	Ports: [2]uint16{3478, 3479},
}

// RFC 8489 §5, §14; RFC 5780 §6, §7: a request asks for an answer from the other address and port.
func TestRFC8489_5_TheAnswerHasBothAddresses(t *testing.T) {
	request, err := hex.DecodeString("000100082112a4420102030405060708090a0b0c" + "0003000400000006")
	require.NoError(t, err)
	answer, addr, port, ok := mirror.Answer(request, at("192.0.2.1:32853"), 0, 1)
	require.True(t, ok)
	assert.Equal(t, []int{1, 0}, []int{addr, port})
	assert.Equal(t, "010100182112a4420102030405060708090a0b0c"+
		"002000080001a147e112a643"+
		"802c000800010d960a060002", hex.EncodeToString(answer))
	_, _, _, ok = mirror.Answer(request[:19], at("192.0.2.1:1"), 0, 0)
	assert.False(t, ok)
	_, _, _, ok = mirror.Answer(answer, at("192.0.2.1:1"), 0, 0)
	assert.False(t, ok, "an answer gets no answer")
}

func FuzzSTUN(f *testing.F) {
	p := nat.NewProbe(server, rand.New(rand.NewPCG(1, 2)))
	request, _, _, _ := p.Output(1)
	f.Add(request)
	answer, _, _, _ := mirror.Answer(request, hostA, 0, 0)
	f.Add(answer)
	f.Fuzz(func(t *testing.T, b []byte) {
		p := nat.NewProbe(server, rand.New(rand.NewPCG(1, 2)))
		p.Output(1)
		p.Input(b)
		p.Advance(2)
		if answer, addr, port, ok := mirror.Answer(b, hostA, 0, 0); ok {
			assert.Len(t, answer, 44)
			assert.Less(t, addr+port, 3)
		}
	})
}
