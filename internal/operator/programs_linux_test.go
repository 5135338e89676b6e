package operator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/control"
)

// limitOf derives what limits a sender from the state of the kernel's connection.
func TestSendLimitOfAProgram(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]control.Info{
		"recovery": {CAState: "loss", Unacked: 3},
		"idle":     {},
		"app":      {Unacked: 3},
		"rwnd":     {Unacked: 3, NotSentBytes: 9, SndWnd: 3999, SndCwnd: 10_000},
		"persist":  {NotSentBytes: 9, SndCwnd: 10_000, Probes: 1},
		"cwnd":     {Unacked: 3, NotSentBytes: 9, Pipe: 3000, SndWnd: 9000, SndCwnd: 3000},
		"pacing":   {Unacked: 3, NotSentBytes: 9, Pipe: 3000, SndWnd: 9000, SndCwnd: 9000},
	} {
		c.SndMSS = 1000
		if c.CAState == "" {
			c.CAState = "open"
		}
		assert.Equal(t, want, limitOf(&c))
	}
}

// parseDiag parses the complete parts of a truncated message.
func TestParseDiag(t *testing.T) {
	t.Parallel()
	b := make([]byte, diagMessageLen, 400)
	b[0], b[1], b[diagTimer], b[diagRetries] = unix.AF_INET6, 1, 1, 2
	copy(b[diagPorts:], []byte{0, 80, 156, 64})
	copy(b[diagAddrs:], []byte{10: 255, 255, 10, 0, 0, 1})
	copy(b[diagAddrs+16:], []byte{10: 255, 255, 10, 0, 0, 2})
	native.PutUint32(b[diagExpires:], 200)
	native.PutUint32(b[diagQueues+4:], 5)
	s := parseDiag(b, unix.IPPROTO_TCP)
	assert.Equal(t, "10.0.0.1:80", s.Local.String())
	assert.Equal(t, "10.0.0.2:40000", s.Remote.String())
	assert.Equal(t, "ESTABLISHED", s.State)
	assert.Equal(t, 5, s.SendQ)
	assert.Equal(t, &control.Timer{Name: "on", In: 200 * time.Millisecond, Retries: 2}, s.Timer)
	assert.Nil(t, s.Info)
	b = append(b, 8, 0, diagCongestion, 0, 'b', 'b', 'r', 0, 16, 0, diagInfo, 0)
	b = append(b, 1, 3, 0, 0, 0, optSACK|optScale, 0xa7, 1, 64, 13, 3, 0)
	s = parseDiag(b, unix.IPPROTO_TCP)
	assert.Equal(t, "bbr", s.Info.CongestionControl)
	assert.Equal(t, "recovery", s.Info.CAState)
	assert.Equal(t, 200*time.Millisecond, s.Info.RTO)
	assert.Equal(t, []int{7, 10}, []int{s.Info.SndWScale, s.Info.RcvWScale})
	assert.True(t, s.Info.SACK && s.Info.DeliveryRateAppLimited && !s.Info.Timestamps)
	for n := diagMessageLen; n < len(b); n++ {
		parseDiag(b[:n], unix.IPPROTO_TCP)
	}
	assert.Equal(t, "UDP", parseDiag(b, unix.IPPROTO_UDP).State)
	b[1] = 200
	assert.Equal(t, "CLOSED", parseDiag(b, unix.IPPROTO_TCP).State)
}
