package services_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
)

// sendAndReceive sends a file to a receiver that is already waiting.
func sendAndReceive(tb testing.TB, from, to *operator.Node, addr, path, target string) (
	sent, got control.Transfer, sendErr, recvErr error,
) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	listening := make(chan struct{})
	var once sync.Once
	done := make(chan struct{})
	go func() {
		defer close(done)
		got, recvErr = control.Ask(ctx, to, control.RecvFile{
			Path: target, Port: 9, Progress: func(control.Progress) { once.Do(func() { close(listening) }) },
		})
		once.Do(func() { close(listening) })
	}()
	<-listening
	sent, sendErr = control.Ask(ctx, from, control.SendFile{
		Path: path, Addr: netip.MustParseAddr(addr), Port: 9,
	})
	<-done
	return sent, got, sendErr, recvErr
}

func TestFilesOfEverySizeArrive(t *testing.T) {
	a, b, c := operatortest.Three(t, node.Config{Seed: 5})
	testenv.Ask(t, b, control.SetLoss{Percent: 2})
	dir := t.TempDir()
	for _, size := range []int{0, 1, 1360, 1 << 20, 5_000_000} {
		path, target := filepath.Join(dir, "in"), filepath.Join(dir, fmt.Sprint(size))
		data := make([]byte, size)
		rng := rand.New(rand.NewPCG(uint64(size), 1))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		require.NoError(t, os.WriteFile(path, data, 0o600))
		sent, got, sendErr, recvErr := sendAndReceive(t, c, a, "10.0.0.1", path, target)
		require.NoError(t, sendErr)
		require.NoError(t, recvErr)
		stored, err := os.ReadFile(target)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, stored))
		assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256(data)), sent.SHA256)
		assert.Equal(t, sent.SHA256, got.SHA256)
		assert.Equal(t, int64(size), got.Bytes)
		_, err = os.Stat(target + ".part")
		assert.ErrorIs(t, err, os.ErrNotExist)
	}
}

func TestTransferFaults(t *testing.T) {
	a, b := twoNodes(t)
	dir := t.TempDir()
	ctx := t.Context()
	_, err := control.Ask(ctx, a, control.SendFile{Path: dir, Addr: netip.MustParseAddr("10.0.0.2"), Port: 1})
	require.ErrorContains(t, err, "not a regular file")
	_, err = control.Ask(ctx, a, control.SendFile{Path: filepath.Join(dir, "no"), Addr: netip.MustParseAddr("10.0.0.2"), Port: 1})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = control.Ask(ctx, b, control.RecvFile{Path: filepath.Join(dir, "no", "x"), Port: 1})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "no such directory: "+filepath.Join(dir, "no"))
	path := filepath.Join(dir, "in")
	require.NoError(t, os.WriteFile(path, make([]byte, 1000), 0o600))
	_, err = control.Ask(ctx, a, control.SendFile{Path: path, Addr: netip.MustParseAddr("10.0.0.2"), Port: 1})
	require.ErrorIs(t, err, control.ErrRefused)

	t.Log("# existing files and parts of earlier transfers are replaced only with permission")
	target := filepath.Join(dir, "out")
	recv := control.RecvFile{Path: target, Port: 1}
	for _, name := range []string{target, target + ".part"} {
		require.NoError(t, os.WriteFile(name, []byte("mine"), 0o600))
		_, err = control.Ask(ctx, b, recv)
		require.ErrorIs(t, err, os.ErrExist)
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, "mine", string(text))
		require.NoError(t, os.Remove(name))
	}
	t.Log("# a link in the place of the part leads nowhere")
	require.NoError(t, os.Symlink(path, target+".part"))
	recv.Overwrite = true
	_, err = control.Ask(ctx, b, recv)
	require.ErrorContains(t, err, "not a regular file")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 1000, info.Size())
}

func TestTwoTransfersIntoOneFileAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("skip: needs advisory locks of files")
	}
	a, b := twoNodes(t)
	path := filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithCancel(t.Context())
	listening := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := control.Ask(ctx, a, control.RecvFile{
			Path: path, Port: 1, Progress: func(control.Progress) { close(listening) },
		})
		assert.ErrorIs(t, err, context.Canceled)
	})
	<-listening
	for _, n := range []*operator.Node{a, b} {
		_, err := control.Ask(t.Context(), n, control.RecvFile{Path: path, Port: 2})
		require.ErrorIs(t, err, control.ErrBusy)
	}
	cancel()
	wg.Wait()
}
