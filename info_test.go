package tidepool

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/control"
)

func TestConnInfoString(t *testing.T) {
	i := ConnInfo{State: "ESTABLISHED", Info: control.Info{
		CongestionControl: "cubic", SndWScale: 7, RcvWScale: 8, SndMSS: 1360, SndCwnd: 13600,
		Limited: "app",
	}}
	i.TotalRetrans = 2
	line := i.String()
	assert.Contains(t, line, "ESTABLISHED cubic wscale:7,8 rto:0s")
	assert.Contains(t, line, " retrans:0/2 ")
	assert.Contains(t, line, " limited:app")
	assert.NotContains(t, line, "ssthresh")
}
