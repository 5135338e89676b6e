package control_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// answering is an operator that gives one answer to everything.
type answering struct {
	answer any
	err    error
}

func (a answering) Do(context.Context, any) (any, error)    { return a.answer, a.err }
func (a answering) Watch(func(control.Event)) (stop func()) { return func() {} }

func TestAskReturnsTheAnswerOfItsRequest(t *testing.T) {
	want := []control.Neighbor{{Iface: "if0", Addr: netip.MustParseAddr("10.0.0.2")}}
	got, err := control.Ask(t.Context(), answering{answer: want}, control.Neighbors{})
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func TestAskReturnsTheErrorAlone(t *testing.T) {
	op := answering{err: control.ErrNoSuchSocket}
	got, err := control.Ask(t.Context(), op, control.Window{SID: 7})
	require.ErrorIs(t, err, control.ErrNoSuchSocket)
	assert.Zero(t, got)
	require.ErrorIs(t, control.Order(t.Context(), op, control.Close{}), control.ErrNoSuchSocket)
}

func TestAWrongAnswerIsABug(t *testing.T) {
	op := answering{answer: 42}
	assert.PanicsWithValue(t, "BUG: control: control.Routes was answered with int, "+
		"want []control.Route", func() { _, _ = control.Ask(t.Context(), op, control.Routes{}) })
}

func TestCallbacksStayOutOfTheJSON(t *testing.T) {
	b, err := json.Marshal(control.SendFile{Path: "f", Progress: func(control.Progress) {}})
	require.NoError(t, err)
	assert.JSONEq(t, `{"path":"f","addr":"","port":0}`, string(b))
}

func TestZoneMustBeAnInterface(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ addr, links, want, problem string }{
		{"10.0.0.1", "if0 if1", "10.0.0.1", ""},
		{"169.254.0.1", "if0 if1", "169.254.0.1", ""},
		{"2001:db8::1", "if0 if1", "2001:db8::1", ""},
		{"fe80::1", "if0", "fe80::1%if0", ""},
		{"fe80::1", "", "fe80::1", ""},
		{"fe80::1%if1", "if0 if1", "fe80::1%if1", ""},
		{"ff02::1", "if0 if1", "ff02::1", ""},
		{"ff02::1%if1", "if0 if1", "ff02::1%if1", ""},
		{"fe80::1", "if0 if1", "", "a link-local address needs the interface: must be fe80::1%if0 or fe80::1%if1"},
		{"fe80::1%if9", "if0", "", `zone "if9" is not an interface with IPv6: must be fe80::1%if0`},
		{"2001:db8::1%if0", "if0", "", "only link-local addresses have a zone: must be 2001:db8::1"},
	} {
		got, err := control.Scope(netip.MustParseAddr(tt.addr), strings.Fields(tt.links))
		if tt.problem != "" {
			require.ErrorIs(t, err, control.ErrUsage, tt.addr)
			assert.EqualError(t, err, tt.problem, tt.addr)
			continue
		}
		require.NoError(t, err, tt.addr)
		assert.Equal(t, tt.want, got.String())
	}
}
