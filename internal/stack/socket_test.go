package stack_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

func TestSocketNumbersAreTheSmallestFree(t *testing.T) {
	w, a, _, _ := line(t)
	local := face("x", "10.0.0.1/24").Addr.Addr()
	var ids []int
	for port := range 4 {
		l, err := a.TCP().Listen(addrPort(local, 80+port), 1)
		require.NoError(t, err)
		ids = append(ids, a.Sockets().AddListener(l))
	}
	assert.Equal(t, []int{0, 1, 2, 3}, ids)
	a.Sockets().Remove(2)
	a.Sockets().Remove(1)
	a.Sockets().Remove(1)
	assert.Len(t, a.Sockets().Infos(true, w.now), 2)
	l, err := a.TCP().Listen(addrPort(local, 90), 1)
	require.NoError(t, err)
	assert.Equal(t, 1, a.Sockets().AddListener(l))
	assert.Equal(t, 2, a.Sockets().AddListener(l))
	assert.Equal(t, 4, a.Sockets().AddListener(l))
}

func TestTimeWaitKeepsItsSocketNumber(t *testing.T) {
	w, a, _, _ := line(t)
	c, err := a.TCP().Connect(w.now, addrPort(addr("10.1.0.2"), 9), 0)
	require.NoError(t, err)
	id := a.Sockets().AddConn(c)
	a.Sockets().Retire(id, w.now.Add(time.Minute))
	list := a.Sockets().Infos(true, w.now)
	require.Len(t, list, 1)
	assert.Equal(t, "TIME_WAIT", list[0].State)
	assert.Empty(t, a.Sockets().Infos(true, w.now.Add(time.Minute)))
	_, ok := a.Sockets().Get(id)
	assert.False(t, ok)
}

func TestFirstSocketNumber(t *testing.T) {
	s, err := stack.New(1, stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.0.0.1/24")}, FirstSocket: 3,
	})
	require.NoError(t, err)
	assert.Equal(t, 3, s.Sockets().AddListener(new(tcp.Listener)))
}

// A half-open connection is in the list of sockets, without a number.
func TestHalfOpenConnectionsAreListed(t *testing.T) {
	w, a, _, b := line(t)
	at := addrPort(addr("10.1.0.2"), 80)
	l, err := b.TCP().Listen(at, 4)
	require.NoError(t, err)
	assert.Zero(t, b.Sockets().AddListener(l))
	back := w.wires[end{2, 0}]
	delete(w.wires, end{2, 0}) // the link loses b's answers
	c, err := a.TCP().Connect(w.now, at, 0)
	require.NoError(t, err)
	w.run(1500 * time.Millisecond)
	list := b.Sockets().Infos(true, w.now)
	require.Len(t, list, 2)
	half := list[1]
	assert.Equal(t, -1, half.SID)
	assert.Equal(t, "SYN_RECEIVED", half.State)
	assert.Equal(t, at, half.Local)
	assert.Equal(t, c.Tuple().Local(), half.Remote)
	require.NotNil(t, half.Timer)
	assert.Equal(t, "on", half.Timer.Name)
	assert.Positive(t, half.Timer.In)
	assert.Positive(t, half.Timer.Retries)
	require.NotNil(t, half.Info)
	assert.Equal(t, half.Timer.Retries, half.Info.Retransmits)
	w.wires[end{2, 0}] = back
	w.run(5 * time.Second)
	_, ok := l.Accept()
	assert.True(t, ok, "listing the connection did not change it")
	assert.Len(t, b.Sockets().Infos(false, w.now), 1)
}
