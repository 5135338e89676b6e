package tidepool

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// infoNames maps fields of ConnInfo to those of control.Info that have other names. Another test
// compares control.Info with tcp.Info.
var infoNames = map[string]string{
	"Congestion":      "CongestionControl",
	"Recovery":        "CAState",
	"SendScale":       "SndWScale",
	"RecvScale":       "RcvWScale",
	"MSS":             "SndMSS",
	"RecvMSS":         "RcvMSS",
	"Cwnd":            "SndCwnd",
	"Ssthresh":        "SndSsthresh",
	"SendWindow":      "SndWnd",
	"RecvWindow":      "RcvWnd",
	"NotSent":         "NotSentBytes",
	"SendBuffer":      "SndBuf",
	"RecvBuffer":      "RcvBuf",
	"RecvRTT":         "RcvRTT",
	"RecvSpace":       "RcvSpace",
	"AppLimited":      "DeliveryRateAppLimited",
	"Retransmits":     "TotalRetrans",
	"Timeouts":        "TotalRTO",
	"TimeoutEpisodes": "TotalRTORecoveries",
	"TimeoutTime":     "TotalRTOTime",
	"Retries":         "Retransmits",
	"DSACKs":          "DSACKDups",
	"ReorderSeen":     "ReordSeen",
	"OutOfOrder":      "RcvOOOPack",
	"Early":           "OutOfOrder",
	"LastSent":        "LastDataSent",
	"LastReceived":    "LastDataRecv",
	"LastAck":         "LastAckRecv",
}

// ConnInfo has a field for every field that an operator sees, with its value.
func TestConnInfoIsComplete(t *testing.T) {
	zero := reflect.ValueOf(connInfo("", &control.Info{}))
	seen := map[string]bool{"State": true}
	assert.Equal(t, "CLOSING", connInfo("CLOSING", &control.Info{}).State)
	for field := range reflect.TypeFor[control.Info]().Fields() {
		name := field.Name
		if other := infoNames[name]; other != "" {
			name = other
		}
		i := control.Info{}
		set := reflect.ValueOf(&i).Elem().FieldByIndex(field.Index)
		switch {
		case set.Kind() == reflect.String:
			set.SetString("x")
		case set.Kind() == reflect.Bool:
			set.SetBool(true)
		case set.CanUint():
			set.SetUint(3)
		default:
			require.True(t, set.CanInt(), name)
			set.SetInt(3)
		}
		got := reflect.ValueOf(connInfo("", &i)).FieldByName(name)
		require.True(t, got.IsValid(), "%s is missing", name)
		assert.NotEqual(t, zero.FieldByName(name).Interface(), got.Interface(),
			"%s is not filled in", name)
		seen[name] = true
	}
	for f := range reflect.TypeFor[ConnInfo]().Fields() {
		assert.True(t, seen[f.Name], "no source for %s", f.Name)
	}
}

func TestConnInfoString(t *testing.T) {
	i := ConnInfo{
		State: "ESTABLISHED", CongestionControl: "cubic", SndWScale: 7, RcvWScale: 8,
		SndMSS: 1360, SndCwnd: 13600, TotalRetrans: 2, Limited: "app",
	}
	line := i.String()
	assert.Contains(t, line, "ESTABLISHED cubic wscale:7,8 rto:0s")
	assert.Contains(t, line, " retrans:0/2 ")
	assert.Contains(t, line, " limited:app")
	assert.NotContains(t, line, "ssthresh")
}
