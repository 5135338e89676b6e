package adapters

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"

	"github.com/tidepool-net/tidepool/internet"
)

var allKinds = flag.Bool("allkinds", false, "let TestFaults pause hosts and reset connections, too")

// faults plans ten faults within a minute.
func faults(w *internet.World) {
	if *allKinds {
		w.Faults(10, time.Minute, internet.Cuts, internet.Losses, internet.Crashes, internet.Pauses,
			internet.Resets)
		return
	}
	w.Faults(10, time.Minute)
}

// Each library runs under random faults: go test -run TestFaults -internet.seeds=1000. The
// library's answers must be right, no call may take longer than its deadline, and the library must
// work again after the faults. When it is closed, no goroutine may remain.
func TestFaults(t *testing.T) {
	http1, http2 := new(http.Protocols), new(http.Protocols)
	http1.SetHTTP1(true)
	http2.SetUnencryptedHTTP2(true)
	for name, row := range map[string]struct {
		network string
		run     func(*testing.T, *internet.World)
	}{
		"http1":  {lossy, webFaults(http1)},
		"http2":  {lossy, webFaults(http2)},
		"grpc":   {lossy, grpcFaults},
		"quic":   {lossy, quicFaults},
		"sql":    {lossy, sqlFaults},
		"redis":  {lossy, redisFaults},
		"ssh":    {lossy, sshFaults},
		"libp2p": {lossy, libp2pFaults},
		"raft":   {star(3, "delay 5ms loss 1%"), raftFaults},
	} {
		t.Run(name, func(t *testing.T) { internet.Test(t, row.network, row.run) })
	}
}

// faultyMinutes repeatedly calls its argument with a deadline of 5 s, while ten faults happen
// within a minute. More than a minute after the last fault, no call may fail.
func faultyMinutes(t *testing.T, w *internet.World, once func(context.Context) error) {
	t.Helper()
	faults(w)
	limit := 6 * time.Second
	if *allKinds {
		limit += 10 * time.Second // Dial on a paused host returns when the host resumes
	}
	began, failed := time.Now(), 0
	var last error
	for worked := 0; worked < 3; {
		asked := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err := once(ctx)
		cancel()
		require.Less(t, time.Since(asked), limit, "the call took longer than its deadline: %v", err)
		switch passed := time.Since(began); {
		case err != nil:
			failed, last, worked = failed+1, err, 0
			require.Less(t, passed, 140*time.Second, "no recovery: %v", err)
		case passed > 75*time.Second: // the last fault lasts until 70 s at most
			worked++
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Logf("%d calls failed: %v", failed, last)
}

func webFaults(protocols *http.Protocols) func(*testing.T, *internet.World) {
	return func(t *testing.T, w *internet.World) {
		w.Host("server").Go(web(protocols))
		transport := &http.Transport{
			DialContext: w.Host("client").DialContext, Protocols: protocols,
			HTTP2: &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
		}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		faultyMinutes(t, w, func(ctx context.Context) error {
			body, err := get(ctx, client, "http://server/page")
			if err == nil {
				assert.True(t, bytes.Equal(page, body), "%d bytes of %d", len(body), len(page))
			}
			return err
		})
	}
}

func grpcFaults(t *testing.T, w *internet.World) {
	w.Host("server").Go(func(h *internet.Host) {
		ln, err := h.Listen("tcp", ":50051")
		if err != nil {
			return
		}
		s := grpc.NewServer(grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second}),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second}))
		testgrpc.RegisterTestServiceServer(s, interop.NewTestServer())
		_ = s.Serve(ln) // until the host crashes
		s.Stop()
	})
	cc, err := grpc.NewClient("passthrough:///server:50051",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: 10 * time.Second, Timeout: 5 * time.Second,
		}),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			return w.Host("client").DialContext(ctx, "tcp", to)
		}))
	require.NoError(t, err)
	defer cc.Close()
	client := testgrpc.NewTestServiceClient(cc)
	faultyMinutes(t, w, func(ctx context.Context) error {
		answer, err := client.UnaryCall(ctx, &testgrpc.SimpleRequest{
			ResponseSize: 100_000, Payload: &testgrpc.Payload{Body: page},
		}, grpc.WaitForReady(true))
		if err == nil {
			assert.Len(t, answer.Payload.Body, 100_000)
		}
		return err
	})
}

func quicFaults(t *testing.T, w *internet.World) {
	server, client := certificate(t, "server", "echo")
	w.Host("server").Go(quicServer(server, &quic.StatelessResetKey{1}))
	to := &net.UDPAddr{IP: w.Host("server").Addrs()[0].AsSlice(), Port: 443}
	var transport *quic.Transport
	var c *quic.Conn
	hangUp := func() {
		if transport != nil {
			_ = transport.Close()
			_ = transport.Conn.Close()
			transport, c = nil, nil
		}
	}
	defer hangUp()
	faultyMinutes(t, w, func(ctx context.Context) (err error) {
		defer func() {
			if err != nil {
				hangUp()
			}
		}()
		if c == nil {
			pc, err := w.Host("client").ListenPacket("udp", ":0")
			if err != nil {
				return err
			}
			transport = &quic.Transport{Conn: pc}
			if c, err = transport.Dial(ctx, to, client, nil); err != nil {
				return err
			}
		}
		return quicAsk(ctx, t, c, page)
	})
}

func sqlFaults(t *testing.T, w *internet.World) {
	table := new(postgres)
	w.Host("server").Go(table.run)
	db := database(t, w.Host("client"))
	committed := map[int64]bool{}
	n := int64(0)
	faultyMinutes(t, w, func(ctx context.Context) error {
		n++
		err := insert(ctx, db, n)
		if err == nil {
			committed[n] = true
		}
		return err
	})
	checkRows(t, db, committed)
}

func redisFaults(t *testing.T, w *internet.World) {
	w.Host("server").Go(redisServer(t))
	c := redisClient(t, w.Host("client"), -1)
	var asked, done int64
	text := string(page)
	faultyMinutes(t, w, func(ctx context.Context) error {
		asked++
		// the answer to another command would have the wrong text
		key := fmt.Sprintf("key %d", asked)
		if err := c.Set(ctx, key, key+text, 0).Err(); err != nil {
			return err
		}
		got, err := c.Get(ctx, key).Result()
		if err != nil {
			return err
		}
		assert.Len(t, got, len(key+text))
		assert.True(t, strings.HasPrefix(got, key+"a"), "%.20q is the value of %q", got, key)
		if err = c.Incr(ctx, "n").Err(); err == nil {
			done++
		}
		return err
	})
	n, err := c.Get(t.Context(), "n").Int64()
	require.NoError(t, err)
	assert.GreaterOrEqual(t, n, done)
	assert.LessOrEqual(t, n, asked)
}

func sshFaults(t *testing.T, w *internet.World) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(signer)
	w.Host("server").Go(sshServer(config))
	var client *ssh.Client
	hangUp := func() {
		if client != nil {
			_ = client.Close()
			client = nil
		}
	}
	defer hangUp()
	faultyMinutes(t, w, func(ctx context.Context) (err error) {
		if client == nil {
			conn, err := w.Host("client").DialContext(ctx, "tcp", "server:22")
			if err != nil {
				return err
			}
			end, _ := ctx.Deadline()
			_ = conn.SetDeadline(end)
			c, channels, requests, err := ssh.NewClientConn(conn, "server:22", &ssh.ClientConfig{
				User: "a", HostKeyCallback: ssh.FixedHostKey(signer.PublicKey()),
			})
			if err != nil {
				_ = conn.Close()
				return err
			}
			_ = conn.SetDeadline(time.Time{})
			client = ssh.NewClient(c, channels, requests)
		}
		stop := context.AfterFunc(ctx, func() { _ = client.Close() })
		defer stop()
		var out []byte
		session, err := client.NewSession()
		if err == nil {
			session.Stdin = bytes.NewReader(page)
			out, err = session.Output("cat")
		}
		if err != nil {
			hangUp()
			return err
		}
		assert.True(t, bytes.Equal(page, out))
		return nil
	})
}
