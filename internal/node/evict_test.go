package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// TestAnAddressThatGoesTakesRCPAndRDT along: who has a port of theirs there is told, and nobody
// else.
func TestAnAddressThatGoesTakesRCPAndRDT(t *testing.T) {
	var textA string
	a, b := twiceLinked(t, &textA)
	everywhere := netip.MustParseAddrPort("0.0.0.0:9000")
	l, err := b.ListenRCP(everywhere, 0, quick)
	require.NoError(t, err)
	dial := func(to string) *RCPConn {
		c, err := a.DialRCP(t.Context(), netip.AddrPort{}, netip.MustParseAddrPort(to), quick)
		require.NoError(t, err)
		return c
	}
	stays := dial("10.0.0.2:9000")
	serverStays, err := l.AcceptRCP()
	require.NoError(t, err)
	goes := dial("10.1.0.2:9000")
	listens, err := a.ListenRCP(netip.MustParseAddrPort("10.1.0.1:90"), 0, quick)
	require.NoError(t, err)
	object := []RDTObject{NewRDTObject("a", make([]byte, 1000))}
	serves, err := a.ServeRDT(netip.MustParseAddrPort("10.1.0.1:91"), RDTConfig{}, object, nil)
	require.NoError(t, err)
	goesOn, err := a.ServeRDT(netip.MustParseAddrPort("0.0.0.0:92"), RDTConfig{}, object, nil)
	require.NoError(t, err)
	silent, err := b.ListenPacket(netip.MustParseAddrPort("10.1.0.2:7"))
	require.NoError(t, err)
	fetched := make(chan error, 1)
	go func() {
		_, err := a.ListRDT(context.Background(), netip.MustParseAddrPort("10.1.0.2:7"),
			RDTFetch{Config: RDTConfig{Patience: time.Minute}})
		fetched <- err
	}()
	_, asks, err := silent.ReadFromAddrPort(make([]byte, 2000))
	require.NoError(t, err)

	textA = strings.Replace(textA, "if1 10.1.0.1/24", "if1 10.1.0.7/24", 1)
	want := []string{
		"rcp 10.1.0.1:90, listening", fmt.Sprintf("rcp %v to 10.1.0.2:9000", goes.LocalAddr()),
		"rdt 10.1.0.1:91, serving", fmt.Sprintf("rdt %v from 10.1.0.2:7", asks),
	}
	try, err := a.Reload(control.Reload{Try: true}, nil)
	require.NoError(t, err)
	assert.ElementsMatch(t, want, try.Ended)
	_, err = goes.Write([]byte("it was only tried"))
	require.NoError(t, err)

	assert.ElementsMatch(t, want, reload(t, a).Ended)
	_, err = goes.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	require.ErrorContains(t, err, "its local address is no more")
	_, err = goes.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	_, err = listens.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, listens.Close(), net.ErrClosed)
	require.ErrorIs(t, serves.Close(), net.ErrClosed)
	require.ErrorIs(t, <-fetched, syscall.EADDRNOTAVAIL)

	t.Log("# what has another address, or none, goes on, and the ports are free")
	_, err = stays.Write([]byte("on it goes"))
	require.NoError(t, err)
	_, err = io.ReadFull(serverStays, make([]byte, 10))
	require.NoError(t, err)
	entries, err := b.ListRDT(t.Context(), netip.MustParseAddrPort("10.0.0.1:92"), RDTFetch{})
	require.NoError(t, err)
	assert.Len(t, entries, 1)
	require.NoError(t, goesOn.Close())
	for _, at := range []string{"0.0.0.0:90", "0.0.0.0:91"} {
		u, err := a.ListenPacket(netip.MustParseAddrPort(at))
		require.NoError(t, err)
		require.NoError(t, u.Close())
	}
}
