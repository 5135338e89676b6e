package rdt_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rdt"
)

// mute makes a server send to an address that never answers, until the server forgets that address.
// It returns the number of bytes sent. If blind is not nil, the address acknowledges each packet
// with blind(packets sent so far), without having received any.
func mute(c *counter, blind func(sent uint32) []byte) (bytes int) {
	sent := uint32(0)
	for len(c.server.Flows(c.now)) > 0 {
		for to, b, ok := c.server.Output(c.now, nil); ok; to, b, ok = c.server.Output(c.now, nil) {
			sent++
			bytes += len(b)
			if blind != nil {
				c.server.Input(c.now, to, blind(sent))
			}
		}
		due := c.server.Deadline()
		require.NotEqual(c.t, clock.Never, due, "the flow would stay forever")
		c.now = max(c.now, due)
		c.server.Advance(c.now)
	}
	return bytes
}

// A client that forges the source address of a request makes the server send only 4 kB to the
// victim, and not one window after another (RFC 9000 §8.1 describes the same risk). Acknowledgments
// do not change this if they do not prove that a packet arrived. With Trust the server sends the
// whole window.
func TestForgedRequestCausesNoFlood(t *testing.T) {
	cfg := rdt.Config{Adaptive: true, Patience: 10 * time.Second}
	request := rdt.Raw{State: rdt.StateRequest, Payload: []byte{0, 1}}.Data(cfg)
	blind := func(sent uint32) []byte { return rdt.Raw{Sequence: sent}.Ack(cfg) }
	guess := func(sent uint32) []byte {
		return rdt.Raw{Sequence: sent, Arrived: sent - 1, Stamp: 12345}.Echo(cfg)
	}
	for name, row := range map[string]struct {
		answer      func(uint32) []byte
		trust       bool
		least, most int
	}{
		"silent": {nil, false, 1325, 4096 + 1361}, "blind": {blind, false, 1325, 4096 + 1361},
		"guess": {guess, false, 1325, 4096 + 1361}, "trust": {nil, true, 1120 * 1325, 1 << 30},
	} {
		cfg.Trust = row.trust
		c := open(t, cfg, named("a", text(1, 3_000_000)))
		c.server.Input(c.now, client(1), request)
		got := mute(c, row.answer)
		assert.GreaterOrEqual(t, got, row.least, name)
		assert.LessOrEqual(t, got, row.most, name)
	}
	// A repeated request allows one more packet, because the first ones may all have been lost.
	cfg.Trust = false
	c := open(t, cfg, named("a", text(1, 3_000_000)))
	for range 3 {
		c.server.Input(c.now, client(1), request)
	}
	assert.Equal(t, 6, mute(c, nil)/1361)
}

// With the document's fixed timeout the sender requests no echoes. Any acknowledgment opens the
// window.
func TestAcknowledgmentVerifiesTheAddress(t *testing.T) {
	cfg := rdt.Config{Window: 100}
	c := open(t, cfg, named("a", text(1, 3_000_000)))
	request := rdt.Raw{State: rdt.StateRequest, Payload: []byte{0, 1}}.Data(cfg)
	c.server.Input(c.now, client(1), request)
	count := func() (n int) {
		for _, _, ok := c.server.Output(c.now, nil); ok; _, _, ok = c.server.Output(c.now, nil) {
			n++
		}
		return n
	}
	assert.Equal(t, 4, count())
	c.server.Input(c.now, client(1), rdt.Raw{Sequence: 1}.Ack(cfg))
	assert.Equal(t, 97, count())
}

// An invalid request creates no flow, because that flow would never end. Such a request has no or
// too many objects, or ends in the middle of a number.
func TestMalformedRequestsCreateNoFlow(t *testing.T) {
	cfg := rdt.Config{}
	c := open(t, cfg, named("a", text(1, 5000)))
	for _, n := range []int{0, 1, 3, 2*rdt.MaxObjects + 1, 2*rdt.MaxObjects + 2, 1325} {
		request := rdt.Raw{State: rdt.StateRequest, Payload: make([]byte, n)}.Data(cfg)
		c.server.Input(c.now, client(n), request)
	}
	assert.Empty(t, c.server.Flows(c.now))
	assert.Equal(t, uint64(6), c.server.Info().Unknown)
}

// NewServer returns an error if the listing is longer than clients accept.
func TestListingIsBounded(t *testing.T) {
	var objects []rdt.Object
	for i := range 16_500 {
		objects = append(objects, named(fmt.Sprintf("%s%05d", strings.Repeat("x", 1000), i), nil))
	}
	_, err := rdt.NewServer(rdt.Config{}, objects)
	require.ErrorIs(t, err, rdt.ErrObject)
	require.ErrorContains(t, err, "the listing has")
	_, err = rdt.NewServer(rdt.Config{}, objects[:1000])
	require.NoError(t, err)
}
