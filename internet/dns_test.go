package internet

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lookup resolves a name with a host's resolver. It returns the addresses and the time taken.
func lookup(t *testing.T, h *Host, name string) ([]string, time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	list, err := h.Resolver().LookupHost(ctx, name)
	return list, time.Since(began), err
}

// TestResolver: hosts of a network with a dns line resolve names over the links, with the links'
// delays and losses. While the server is down, names are unknown.
func TestResolver(t *testing.T) {
	// Two bubbles in a row: no state of package net may belong to the first.
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			w := Start(t, "family dual\ndns ns\nlink ns r delay 10ms\nlink r a delay 10ms\nlink r B delay 1ms")
			w.AllowLeaks()
			a := w.Host("a")
			list, took, err := lookup(t, a, "B.internal")
			require.NoError(t, err)
			assert.ElementsMatch(t, []string{"10.2.0.2", "2001:db8:2::2"}, list)
			assert.InDelta(t, 40*time.Millisecond, took, 1e5, "a round trip; A and AAAA at once")
			list, _, err = lookup(t, a, "b")
			require.NoError(t, err)
			assert.Len(t, list, 2)
			names, err := a.Resolver().LookupAddr(t.Context(), "2001:db8:2::2")
			require.NoError(t, err)
			assert.Equal(t, []string{"B.internal."}, names)
			_, _, err = lookup(t, a, "c.internal")
			var unknown *net.DNSError
			require.ErrorAs(t, err, &unknown)
			assert.True(t, unknown.IsNotFound)

			// Dial resolves names with the same server.
			serve(w.Host("B"))
			c, err := a.Dial("tcp", "b:7")
			require.NoError(t, err)
			require.NoError(t, ask(c, time.Second))

			// RFC 1035 §4.2.1: a query without a response is repeated.
			w.Link("ns", "r").Cut()
			time.AfterFunc(1500*time.Millisecond, w.Link("ns", "r").Restore)
			began := time.Now()
			conn, err := a.Dial("tcp", "B:7")
			require.NoError(t, err)
			assert.InDelta(t, 3*time.Second, time.Since(began), 1e9, "the third query is answered")
			require.NoError(t, conn.Close())

			// An outage of the name server does not affect connections.
			w.Host("ns").Crash()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err = a.DialContext(ctx, "tcp", "b:7")
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			began = time.Now()
			_, err = a.Dial("tcp", "b:7")
			require.ErrorAs(t, err, &unknown)
			assert.True(t, unknown.IsTimeout)
			assert.Equal(t, 14*time.Second, time.Since(began), "RFC 1536 §1: 1, 2 and 4 s at two addresses")
			require.NoError(t, ask(c, time.Second))
			w.Host("ns").Restart(nil)
			_, _, err = lookup(t, a, "b")
			require.NoError(t, err)
		})
	}
}

// TestNamesWithoutServer: without a dns line, resolving names needs no packets, and port 53 is
// free.
func TestNamesWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Start(t, "link a b delay 1s")
		ln, err := w.Host("a").Listen("tcp", ":53")
		require.NoError(t, err)
		require.NoError(t, ln.Close())
		list, took, err := lookup(t, w.Host("a"), "b")
		require.NoError(t, err)
		assert.Equal(t, []string{"10.0.0.2"}, list)
		assert.Zero(t, took)
		_, _, err = lookup(t, w.Host("a"), "c")
		var unknown *net.DNSError
		require.ErrorAs(t, err, &unknown)
		assert.True(t, unknown.IsNotFound)
	})
}

// The seed determines the IDs and ports of queries: a rerun sends the same packets.
func TestQueriesAreRepeatable(t *testing.T) {
	sum := func(seed uint64) (sum string) {
		synctest.Test(t, func(t *testing.T) {
			w := load(t, "dns ns\nlink ns r loss 30%\nlink r a", seed)
			for range 10 {
				_, _ = w.Host("a").Dial("tcp", "ns:9") // the port is closed
			}
			sum = w.Hash()
		})
		return sum
	}
	first := sum(1)
	assert.Equal(t, first, sum(1))
	assert.NotEqual(t, first, sum(2))
}
