package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// platformWaiters adds the waiter of kernels before 5.11.
func platformWaiters(tb testing.TB) map[string]waiter {
	tb.Helper()
	w, err := newEpollWaiter()
	require.NoError(tb, err)
	require.NoError(tb, w.useTimer())
	return map[string]waiter{"timerfd": w}
}

func pair(t *testing.T) (a, b int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	t.Cleanup(func() {
		unix.Close(fds[0])
		unix.Close(fds[1])
	})
	return fds[0], fds[1]
}

// Real descriptors become readable and writable, and later lose these states.
func TestDescriptors(t *testing.T) {
	eachWaiter(t, func(t *testing.T, w waiter) {
		a, b := pair(t)
		if _, fed := w.(*feedWaiter); fed {
			assert.ErrorIs(t, w.Add(a, 0), errNoDescriptors)
			return
		}
		require.NoError(t, w.Add(a, 6))
		require.Error(t, w.Add(a, 6), "twice")
		require.NoError(t, w.Add(a, 5), "another's now")

		readable := func() {
			t.Helper()
			_, err := unix.Write(b, []byte("x"))
			require.NoError(t, err)
			for range 2 {
				ready, err := w.Wait(patience, nil)
				require.NoError(t, err)
				assert.Equal(t, []int{5}, ready)
			}
			_, err = unix.Read(a, make([]byte, 8))
			require.NoError(t, err)
		}

		t.Log("# readable until it is read")
		readable()
		ready, err := w.Wait(0, nil)
		require.NoError(t, err)
		assert.Empty(t, ready)

		t.Log("# also after another goroutine was the owner")
		doorbellOf(t, w).sleep()
		require.True(t, w.Enter())
		assert.Equal(t, uint32(unix.EPOLLONESHOT), w.(*epollWaiter).once)
		readable()

		t.Log("# writable only after WantWrite")
		w.WantWrite(a, true)
		ready, err = w.Wait(patience, nil)
		require.NoError(t, err)
		assert.Equal(t, []int{5}, ready)
		w.WantWrite(a, false)
		ready, err = w.Wait(time.Millisecond, nil)
		require.NoError(t, err)
		assert.Empty(t, ready)

		t.Log("# a descriptor that is not open")
		w.WantWrite(12345, true)
		_, err = w.Wait(0, nil)
		require.NoError(t, err, "WantWrite ignores a descriptor that was not added")
	})
}

// doorbellOf returns a waiter's doorbell.
func doorbellOf(t *testing.T, w waiter) *doorbell {
	t.Helper()
	switch w := w.(type) {
	case *feedWaiter:
		return &w.bell
	case *epollWaiter:
		return &w.bell
	}
	require.Fail(t, "no doorbell")
	return nil
}
