package stack

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// infoNames maps fields of tcp.Info to their names in control.Info. infoOmitted gives the reason
// for each field that control.Info leaves out.
var (
	infoNames = map[string]string{
		"SendMSS": "MSS", "LimitedSince": "LimitedFor",
		"OutOfOrder": "Early", "OutOfOrderSegs": "OutOfOrder",
	}
	infoOmitted = map[string]string{
		"Una":    "BytesAcked, except for the FIN",
		"ISS":    "positions are offsets in the stream",
		"IRS":    "positions are offsets in the stream",
		"Nxt":    "BytesAcked plus the bytes in flight",
		"RcvNxt": "BytesReceived, except for the FIN",

		"State":          "Socket has it",
		"Time":           "ages are relative to it",
		"DeliveredBytes": "Delivered counts segments",
		"RTTSamples":     "for observers of each sample",
		"WindowScale":    "SendScale is -1 without window scaling",
	}
)

// TestConnInfoIsComplete checks that every field of tcp.Info sets a field of control.Info.
func TestConnInfoIsComplete(t *testing.T) {
	const now = clock.Time(1000)
	of := reflect.TypeFor[tcp.Info]()
	zero := reflect.ValueOf(*ConnInfo(tcp.Info{WindowScale: true}, now))
	seen := map[string]bool{}
	for _, field := range reflect.VisibleFields(of) {
		if infoOmitted[field.Name] != "" || field.Anonymous {
			continue
		}
		name := field.Name
		if other := infoNames[name]; other != "" {
			name = other
		}
		i := tcp.Info{WindowScale: name != "WindowScale"}
		set := reflect.ValueOf(&i).Elem().FieldByIndex(field.Index)
		before := zero
		switch {
		case set.Kind() == reflect.String:
			set.SetString("x")
		case set.Kind() == reflect.Bool:
			before = reflect.ValueOf(*ConnInfo(tcp.Info{WindowScale: i.WindowScale}, now))
			set.SetBool(true)
		case set.CanUint():
			set.SetUint(3)
		default:
			require.True(t, set.CanInt(), name)
			set.SetInt(3)
		}
		got := reflect.ValueOf(*ConnInfo(i, now))
		require.True(t, got.FieldByName(name).IsValid(), "%s is missing", name)
		assert.NotEqual(t, before.FieldByName(name).Interface(), got.FieldByName(name).Interface(),
			"%s is not filled in", name)
		seen[name] = true
	}
	mine := reflect.TypeFor[control.Info]()
	for f := range mine.Fields() {
		assert.True(t, seen[f.Name], "%s has no source in tcp.Info", f.Name)
	}
}
