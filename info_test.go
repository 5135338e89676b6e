package tidepool

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// infoNames are the fields that control.Info has under another name. What that has
// of tcp.Info is tested where it is made.
var infoNames = map[string]string{
	"Congestion": "CongestionControl", "OutOfOrder": "OutOfOrderSegs", "Early": "OutOfOrder",
	"LastSent": "SinceSent", "LastReceived": "SinceReceived", "LastAck": "SinceAck",
}

// Every field of what an operator sees has one in ConnInfo that follows it.
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
		assert.True(t, seen[f.Name], "%s comes from nowhere", f.Name)
	}
}
