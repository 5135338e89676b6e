package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// TestStoppedTransfer checks that both ends report that the transfer was stopped, whichever
// stops first. Neither suggests resuming, because the file is deleted.
func TestStoppedTransfer(t *testing.T) {
	b := newBed(t)
	testenv.Ask(t, b.nodes["A"], control.Impair{Iface: "if0", Way: "out", Words: "rate 10mbit"})
	var (
		mu   sync.Mutex
		told []control.TransferEnded
	)
	for _, op := range b.nodes {
		t.Cleanup(op.Watch(func(e control.Event) {
			if e, ok := e.(control.TransferEnded); ok {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, e)
			}
		}))
	}
	const rounds = 3
	for range rounds {
		p := b.stopped(t)
		assert.Equal(t, problemPath+"stopped", p.Type)
		assert.Regexp(t, `^stopped: \d+ of 20000000 bytes arrived$`, p.Detail)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		mu.Lock()
		defer mu.Unlock()
		assert.Len(c, told, 2*rounds)
	}, 20*time.Second, 10*time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	for _, e := range told {
		assert.True(t, e.Transfer.Once)
		assert.NotContains(t, e.Problem, "go on with")
	}
}

// stopped starts a transfer, stops it after some data has arrived, and returns the problem.
func (b *bed) stopped(t *testing.T) *Problem {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/transfers",
		strings.NewReader(`{"from":"A","to":"B","bytes":20000000}`))
	require.NoError(t, err)
	resp, err := b.http.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	var begun Running
	in := bufio.NewScanner(resp.Body)
	for in.Scan() {
		var l streamLine
		require.NoError(t, json.Unmarshal(in.Bytes(), &l))
		switch l.Event {
		case eventBegun:
			require.NoError(t, json.Unmarshal(l.Data, &begun))
		case "receiving":
			var p control.Progress
			require.NoError(t, json.Unmarshal(l.Data, &p))
			if p.Bytes > 0 && begun.ID > 0 {
				status, _, body := b.do(t, http.MethodDelete,
					fmt.Sprintf("/v1/nodes/A/running/%d", begun.ID), "", "")
				require.Equal(t, http.StatusNoContent, status, "%s", body)
				begun.ID = 0 // removes the callback: stopping once is enough
			}
		case eventError:
			var p Problem
			require.NoError(t, json.Unmarshal(l.Data, &p))
			return &p
		}
	}
	require.Fail(t, "it has no end", "%v", in.Err())
	return nil
}
