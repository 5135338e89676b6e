package control_test

import (
	"context"
	"encoding/json"
	"net/netip"
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
