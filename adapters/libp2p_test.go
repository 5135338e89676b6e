package adapters

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	libp2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internet"
)

// libp2pTransport is libp2p's TCP transport with the sockets of a host.
type libp2pTransport struct {
	*tcp.TcpTransport
	host     *internet.Host
	upgrader transport.Upgrader
}

// Listen listens on the host.
func (t *libp2pTransport) Listen(at multiaddr.Multiaddr) (transport.Listener, error) {
	network, address, err := manet.DialArgs(at)
	if err != nil {
		return nil, err
	}
	ln, err := t.host.Listen(network, address)
	if err != nil {
		return nil, err
	}
	mln, err := manet.WrapNetListener(ln)
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return t.upgrader.UpgradeGatedMaListener(t, t.upgrader.GateMaListener(mln)), nil
}

// libp2pSwarm returns a peer with Noise and yamux, like most libp2p peers over TCP.
func libp2pSwarm(h *internet.Host, key crypto.PrivKey) (*swarm.Swarm, error) {
	id, err := libp2p.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	store, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, err
	}
	err = errors.Join(store.AddPrivKey(id, key), store.AddPubKey(id, key.GetPublic()))
	if err != nil {
		return nil, err
	}
	s, err := swarm.NewSwarm(id, store, eventbus.NewBus())
	if err != nil {
		return nil, err
	}
	muxers := []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: yamux.DefaultTransport}}
	security, err := noise.New(noise.ID, key, muxers)
	if err != nil {
		return nil, err
	}
	up, err := upgrader.New([]sec.SecureTransport{security}, muxers, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	sockets, err := tcp.NewTCPTransport(up, nil, nil, tcp.WithDialerForAddr(
		func(multiaddr.Multiaddr) (tcp.ContextDialer, error) { return h, nil }))
	if err != nil {
		return nil, err
	}
	return s, s.AddTransport(&libp2pTransport{sockets, h, up})
}

// libp2pServer is the program of a peer that echoes each stream.
func libp2pServer(t *testing.T, key crypto.PrivKey) func(*internet.Host) {
	return func(h *internet.Host) {
		s, err := libp2pSwarm(h, key)
		if !assert.NoError(t, err) {
			return
		}
		s.SetStreamHandler(func(stream network.Stream) {
			_, _ = io.Copy(stream, stream) // the client compares
			_ = stream.Close()
		})
		defer hangUp(t, s)
		if s.Listen(multiaddr.StringCast("/ip4/0.0.0.0/tcp/4001")) != nil {
			return // the host is down
		}
		<-h.Context().Done()
	}
}

// hangUp closes a peer. Closing the swarm leaves its peerstore open.
func hangUp(t *testing.T, s *swarm.Swarm) {
	t.Helper()
	assert.NoError(t, errors.Join(s.Close(), s.Peerstore().Close()))
}

// libp2pAsk sends a text on a new stream and compares the answer.
func libp2pAsk(ctx context.Context, t *testing.T, s *swarm.Swarm, to libp2p.ID, text []byte) error {
	t.Helper()
	stream, err := s.NewStream(ctx, to)
	if err != nil {
		return err
	}
	if end, ok := ctx.Deadline(); ok {
		require.NoError(t, stream.SetDeadline(end))
	}
	go func() {
		_, _ = stream.Write(text) // if this fails, the answer is missing
		_ = stream.CloseWrite()
	}()
	answer, err := io.ReadAll(stream)
	if err != nil {
		_ = stream.Reset()
		return err
	}
	assert.True(t, bytes.Equal(text, answer))
	return stream.Close()
}

// libp2pPair starts the server and returns the client.
func libp2pPair(t *testing.T, w *internet.World) (client *swarm.Swarm, server libp2p.ID) {
	t.Helper()
	key, public, err := crypto.GenerateEd25519Key(rand.Reader)
	require.NoError(t, err)
	server, err = libp2p.IDFromPublicKey(public)
	require.NoError(t, err)
	w.Host("server").Go(libp2pServer(t, key))
	mine, _, err := crypto.GenerateEd25519Key(rand.Reader)
	require.NoError(t, err)
	client, err = libp2pSwarm(w.Host("client"), mine)
	require.NoError(t, err)
	at := multiaddr.StringCast("/ip4/" + w.Host("server").Addrs()[0].String() + "/tcp/4001")
	client.Peerstore().AddAddr(server, at, peerstore.PermanentAddrTTL)
	return client, server
}

// Two peers exchange streams. One crashes; the other notices and connects again.
func TestLibp2p(t *testing.T) {
	internet.Test(t, lossy, func(t *testing.T, w *internet.World) {
		s, id := libp2pPair(t, w)
		defer hangUp(t, s)
		require.NoError(t, libp2pAsk(within(t, time.Minute), t, s, id, page))

		w.Host("server").Crash()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.Error(t, libp2pAsk(ctx, t, s, id, page))
		time.Sleep(time.Minute)
		assert.Empty(t, s.ConnsToPeer(id), "yamux's pings find out")
		w.Host("server").Restart(nil)
		require.NoError(t, libp2pAsk(within(t, time.Minute), t, s, id, page))
	})
}

func libp2pFaults(t *testing.T, w *internet.World) {
	s, id := libp2pPair(t, w)
	defer hangUp(t, s)
	faultyMinutes(t, w, func(ctx context.Context) error {
		s.Backoff().Clear(id) // after some failures, the swarm would wait for minutes
		return libp2pAsk(ctx, t, s, id, page)
	})
}
