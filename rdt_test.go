package tidepool_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

func serverPort(s *tidepool.RDTServer) netip.AddrPort {
	return netip.AddrPortFrom(addr("10.0.0.1"), uint16(s.Addr().(*net.UDPAddr).Port))
}

// Over a pipe that loses a fifth each object is what it was, and what was lost was sent again;
// who has acknowledgments name what they answer repeats less.
func TestRDT(t *testing.T) {
	client, server := badPair(t)
	objects := []tidepool.RDTObject{
		{Name: "tide/high", Data: bytes.Repeat([]byte("high water "), 40_000)},
		{Name: "tide/low", Data: []byte("low water")},
		{Name: "nothing"},
	}
	again := map[bool]uint64{}
	for _, cumulative := range []bool{false, true} {
		s, err := server.ServeRDT(netip.AddrPort{}, tidepool.RDT{
			Cumulative: cumulative, Compress: true, Interleave: true, Patience: patience,
		}, objects...)
		require.NoError(t, err)
		how := tidepool.RDT{Checksum: "crc32c", Patience: patience}
		list, err := client.ListRDT(t.Context(), serverPort(s), how)
		require.NoError(t, err)
		require.Len(t, list, 3)
		assert.Equal(t, tidepool.RDTEntry{
			Name: "tide/low", Size: 9, SHA256: sha256.Sum256([]byte("low water")),
		}, list[1])

		got := map[string][]byte{}
		var order []string
		info, err := client.FetchRDT(t.Context(), serverPort(s), how, func(r tidepool.RDTResult) error {
			got[r.Name], order = r.Data, append(order, r.Name)
			assert.Positive(t, r.Done)
			return r.Err
		}, "tide/high", "nothing", "tide/low")
		require.NoError(t, err)
		assert.Equal(t, objects[0].Data, got["tide/high"])
		assert.Equal(t, "low water", string(got["tide/low"]))
		assert.NotNil(t, got["nothing"])
		assert.Equal(t, "tide/high", order[2], "the others do not wait for it")
		assert.Greater(t, info.Received, uint64(300))
		assert.Positive(t, info.Requests)
		assert.Positive(t, info.Took)

		flows := s.Served()
		last := flows[len(flows)-1]
		assert.Equal(t, 3, last.Objects)
		assert.Equal(t, addr("10.0.0.2"), last.Client.Addr())
		assert.Greater(t, last.Sent, last.Again)
		again[cumulative] = last.Again
		require.NoError(t, s.Close())
		assert.Empty(t, s.Served())
	}
	assert.Positive(t, again[false])
	assert.Less(t, again[false], again[true])
}

func TestRDTErrors(t *testing.T) {
	client, server := pair(t, tidepool.Config{})
	client, server = server, client
	data := tidepool.RDTObject{Name: "a", Data: []byte("x")}
	for _, how := range []tidepool.RDT{{Window: 40_000}, {Payload: -1}, {Checksum: "crc"}, {Timeout: -1}} {
		_, err := server.ServeRDT(netip.AddrPort{}, how, data)
		require.ErrorIs(t, err, syscall.EINVAL)
		require.ErrorAs(t, err, new(*net.OpError))
	}
	for _, o := range [][]tidepool.RDTObject{{{Name: "../a"}}, {data, data}, {{}}} {
		_, err := server.ServeRDT(netip.AddrPort{}, tidepool.RDT{}, o...)
		require.ErrorIs(t, err, syscall.EINVAL)
	}
	s, err := server.ServeRDT(netip.AddrPort{}, tidepool.RDT{}, data)
	require.NoError(t, err)
	_, err = server.ServeRDT(netip.AddrPortFrom(netip.Addr{}, serverPort(s).Port()), tidepool.RDT{}, data)
	require.ErrorIs(t, err, syscall.EADDRINUSE)

	ctx := t.Context()
	_, err = client.FetchRDT(ctx, serverPort(s), tidepool.RDT{}, nil, "b")
	require.ErrorIs(t, err, fs.ErrNotExist)
	enough := errors.New("enough")
	_, err = client.FetchRDT(ctx, serverPort(s), tidepool.RDT{},
		func(tidepool.RDTResult) error { return enough })
	require.ErrorIs(t, err, enough)
	_, err = client.ListRDT(ctx, serverPort(s), tidepool.RDT{Checksum: "sum"})
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = client.FetchRDT(ctx, serverPort(s), tidepool.RDT{Checksum: "sum"}, nil)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = client.ListRDT(ctx, netip.MustParseAddrPort("192.168.0.1:1"), tidepool.RDT{})
	require.ErrorIs(t, err, syscall.ENETUNREACH)
	canceled, cancel := context.WithCancelCause(ctx)
	cancel(enough)
	_, err = client.ListRDT(canceled, serverPort(s), tidepool.RDT{})
	require.ErrorIs(t, err, enough)

	at := serverPort(s)
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Close(), net.ErrClosed)
	_, err = client.FetchRDT(ctx, at, tidepool.RDT{}, nil)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoError(t, server.SetUp("if0", false))
	_, err = client.ListRDT(ctx, at, tidepool.RDT{Patience: 10 * time.Millisecond})
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())

	var zero tidepool.Node
	_, err = zero.ServeRDT(netip.AddrPort{}, tidepool.RDT{}, data)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = zero.FetchRDT(ctx, at, tidepool.RDT{}, nil)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = zero.ListRDT(ctx, at, tidepool.RDT{})
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, (&tidepool.RDTServer{}).Close(), net.ErrClosed)
	assert.Empty(t, (&tidepool.RDTServer{}).Served())
}
