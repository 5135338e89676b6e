package repl

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// A transfer without progress for a second is shown as stalled until it makes progress again.
func TestStalledTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &fake{}, Config{})
		j := s.newJob("sendfile big.bin", func() {})
		p := control.Progress{Bytes: 1000, Total: 4000, Elapsed: time.Second}
		line := func() string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return barLine(s.jobs, 80)
		}
		s.advance(j, p)
		time.Sleep(stallTime - time.Millisecond)
		assert.Contains(t, line(), "25%")
		assert.NotContains(t, line(), "stalled")
		s.advance(j, p) // no progress
		time.Sleep(time.Millisecond)
		assert.Contains(t, line(), "25% stalled")
		p.Bytes++
		s.advance(j, p)
		assert.NotContains(t, line(), "stalled")
		close(j.done)
		s.mu.Lock()
		s.forget(j)
		s.mu.Unlock()
	})
}

func TestHelpOfATopic(t *testing.T) {
	for topic, want := range map[string]string{
		"probes": "traceroute", "Network": "interfaces", "loss": "lossyforward",
	} {
		s := open(t, &fake{}, Config{})
		require.NoError(t, s.Command(t.Context(), "help", topic), topic)
		assert.Contains(t, s.out.String(), want, topic)
		assert.NotContains(t, s.out.String(), "quit", topic)
	}
	s := open(t, &fake{}, Config{})
	assert.ErrorContains(t, s.Command(t.Context(), "help", "bogus"), `no command "bogus"`)
}

func TestRouteGet(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.9": "10.0.0.9 by 10.0.0.0/24 dev if0",
	} {
		s := open(t, &fake{}, Config{})
		require.NoError(t, s.Command(t.Context(), "route", "get", addr))
		assert.Contains(t, s.out.String(), want)
	}
	s := open(t, &fake{}, Config{})
	assert.ErrorContains(t, s.Command(t.Context(), "route", "get", "10.0.0"), "not an IP address")
}

// `recvfile` returns when it listens, however long that takes, or when it fails.
func TestRecvFileReturnsWhenItListens(t *testing.T) {
	for _, starts := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ready, end := make(chan struct{}), make(chan struct{})
			s := open(t, &fake{do: func(_ context.Context, req any) (any, error, bool) {
				r, ok := req.(control.RecvFile)
				if !ok {
					return nil, nil, false
				}
				<-ready
				if starts {
					r.Progress(control.Progress{Total: -1})
					<-end
				}
				return control.Transfer{}, control.ErrPortInUse, true
			}}, Config{})
			returned := make(chan error, 1)
			go func() { returned <- s.Execute(t.Context(), "recvfile f 80") }()
			time.Sleep(time.Minute)
			require.Empty(t, returned, "it does not listen yet")
			close(ready)
			err := <-returned
			if starts {
				require.NoError(t, err)
				close(end)
				err = s.await(t.Context())
			}
			require.ErrorIs(t, err, control.ErrPortInUse)
		})
	}
}
