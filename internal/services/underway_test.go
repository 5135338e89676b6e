package services_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/operator"
)

// waiting starts recvfile on b. It returns the transfer's number once its listener is open.
func waiting(t *testing.T, b *operator.Node, path string, port uint16) (id int, ended <-chan error) {
	t.Helper()
	stands, over := make(chan int, 1), make(chan error, 1)
	go func() {
		_, err := control.Ask(t.Context(), b, control.RecvFile{
			Path: path, Port: port, Progress: func(p control.Progress) {
				select {
				case stands <- p.ID:
				default:
				}
			},
		})
		over <- err
	}()
	return <-stands, over
}

// TestTransfersUnderway checks that every client sees all transfers that are in progress, and may
// stop them.
func TestTransfersUnderway(t *testing.T) {
	_, b := twoNodes(t)
	list := testenv.Ask(t, b, control.Transfers{})
	assert.Empty(t, list)

	target := filepath.Join(t.TempDir(), "target")
	id, ended := waiting(t, b, target, 9000)
	list = testenv.Ask(t, b, control.Transfers{})
	require.Len(t, list, 1)
	assert.Equal(t, id, list[0].ID)
	assert.Equal(t, "recvfile", list[0].What)
	assert.Equal(t, uint16(9000), list[0].Port)
	assert.Equal(t, target, list[0].Path)
	assert.False(t, list[0].Peer.IsValid())

	_, err := control.Ask(t.Context(), b, control.RecvFile{Path: target, Port: 9001})
	require.ErrorIs(t, err, control.ErrBusy)
	require.ErrorContains(t, err, "transfer 1, recvfile on port 9000; `cancel 1` stops it")
	// A hard link to the same file conflicts, too.
	_, err = control.Ask(t.Context(), b, control.Fetch{
		URL: "10.0.0.1/x", Path: filepath.Dir(target) + "/./target",
	})
	require.ErrorIs(t, err, control.ErrBusy)
	require.ErrorContains(t, err, "transfer 1, recvfile on port 9000")

	err = control.Order(t.Context(), b, control.StopTransfer{ID: 99})
	require.ErrorIs(t, err, control.ErrNoSuchTransfer)
	require.ErrorContains(t, err, "`transfers` lists them")
	testenv.Ask(t, b, control.StopTransfer{ID: id})
	err = <-ended
	require.ErrorIs(t, err, control.ErrStopped)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "no sender had connected")
	list = testenv.Ask(t, b, control.Transfers{})
	assert.Empty(t, list)
	assert.NoFileExists(t, target+".part")
}

// TestStoppedTransferResumes checks that both ends report the progress of the stopped transfer and
// how to resume it, and that it resumes there.
func TestStoppedTransferResumes(t *testing.T) {
	a, b := twoNodes(t)
	file, data, _ := someFile(t)
	// The reader reads a little and then waits, so the sender's buffer and the window fill up.
	l, err := b.Node.TCP.Listen(netip.MustParseAddrPort("10.0.0.2:9000"), 1)
	require.NoError(t, err)
	big := filepath.Join(t.TempDir(), "big")
	require.NoError(t, os.WriteFile(big, make([]byte, 64<<20), 0o644))
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		c, err := l.AcceptTCP()
		if err == nil {
			_, err = c.Read(make([]byte, 1000))
		}
		if err != nil {
			return
		}
		stop()
	}()
	_, err = control.Ask(ctx, a, control.SendFile{
		Path: big, Addr: netip.MustParseAddr("10.0.0.2"), Port: 9000,
	})
	require.ErrorIs(t, err, control.ErrStopped)
	assert.Regexp(t, "^sendfile .*big: stopped \\(of 67108864 bytes \\d+ were written and \\d+ "+
		"acknowledged: continue with `recvfile --resume` at the receiver", err.Error())
	require.NoError(t, l.Close())

	// Stopping the receiver has the same effect: its partial file is kept and can be resumed.
	target := filepath.Join(t.TempDir(), "target")
	id, ended := waiting(t, b, target, 9001)
	c, err := a.Node.TCP.Dial(t.Context(), netip.MustParseAddrPort("10.0.0.2:9001"))
	require.NoError(t, err)
	_, err = c.Write(data[:5000])
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		list, err := control.Ask(t.Context(), b, control.Transfers{})
		return err == nil && len(list) == 1 && list[0].Peer.IsValid()
	}, 20*time.Second, 5*time.Millisecond)
	testenv.Ask(t, b, control.StopTransfer{ID: id})
	err = <-ended
	require.ErrorIs(t, err, control.ErrStopped)
	kept, statErr := os.Stat(target + ".part")
	require.NoError(t, statErr)
	require.ErrorContains(t, err, fmt.Sprintf("stopped (%d bytes are kept in %s.part: "+
		"continue with --resume here and --offset %[1]d at the sender)", kept.Size(), target))
	m := moveFile(t, a, b, control.SendFile{Path: file, Offset: kept.Size()},
		control.RecvFile{Path: target, Resume: true})
	require.NoError(t, m.sendErr)
	require.NoError(t, m.recvErr)
	got, err := os.ReadFile(target)
	require.NoError(t, err)
	assert.Equal(t, data, got)
}
