package tidepool_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
	"golang.org/x/net/nettest"

	"github.com/tidepool-net/tidepool"
	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// lossyTCP is a TCP for links with high loss and no delay, with the timeouts of the course's
// networks.
var lossyTCP = tidepool.TCP{RTOMin: 2e6, RTOInitial: 50e6, RTOMax: 1e9}

// golang.org/x/net/nettest on every kind of link.
func TestNettest(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name string
		open func(t *testing.T) (client, server *tidepool.Node)
	}{
		{"a pipe", func(t *testing.T) (client, server *tidepool.Node) {
			a, b := dualPair(t, tidepool.Config{TCP: lossyTCP})
			return b, a
		}},
		{"a lossy pipe", func(t *testing.T) (client, server *tidepool.Node) {
			x, y := tidepool.Pipe(0)
			cfg := host(tidepool.Config{TCP: lossyTCP, Seed: 3}, "10.0.0.1/24", "", x)
			cfg.Interfaces[0].Impair = tidepool.Impairments{
				Loss: 0.01, Duplicate: 0.01, Reorder: 0.01, Corrupt: 0.01,
				Delay: 200 * time.Microsecond, Jitter: 50 * time.Microsecond, Rate: 1e9,
			}
			client = open(t, dual(host(tidepool.Config{TCP: lossyTCP}, "10.0.0.2/24", "", y)))
			return client, open(t, dual(cfg))
		}},
		{"UDP", func(t *testing.T) (client, server *tidepool.Node) {
			a, _, c := udpLine(t, tidepool.Config{TCP: lossyTCP})
			return c, a
		}},
		{"lossy UDP", func(t *testing.T) (client, server *tidepool.Node) {
			a, router, c := udpLine(t, tidepool.Config{TCP: lossyTCP, Seed: 1})
			require.NoError(t, router.SetLoss(0.01))
			return c, a
		}},
	} {
		test := func(t *testing.T, address string) {
			client, server := kind.open(t)
			l, err := server.Listen("tcp", net.JoinHostPort(address, "0"))
			require.NoError(t, err)
			defer l.Close()
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				c1, err = client.Dial("tcp", l.Addr().String())
				if err != nil {
					return nil, nil, nil, err
				}
				c2, err = l.Accept()
				if err != nil {
					return nil, nil, nil, err
				}
				return c1, c2, func() { _ = c1.Close(); _ = c2.Close() }, nil
			})
		}
		t.Run(kind.name, func(t *testing.T) { families(t, test) })
	}
}

// lossyLine is line with a router that drops 1 % in each direction.
func lossyLine(tb testing.TB) (a, c *tidepool.Node) {
	tb.Helper()
	a, router, c := line(tb, tidepool.Config{TCP: lossyTCP, Seed: 7})
	require.NoError(tb, router.SetLoss(0.01))
	return a, c
}

// text returns size bytes generated from a seed.
func text(seed uint64, size int) []byte {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	b := make([]byte, size)
	_, _ = mathrand.NewChaCha8(key).Read(b)
	return b
}

// net/http: 64 concurrent clients, half downloading and half uploading, transfer 10 MB (in long
// tests 100 MB) through a router that drops 1 %, and every byte is right.
func TestHTTPThroughALossyRouter(t *testing.T) { families(t, fetchLossily) }

func fetchLossily(t *testing.T, at string) {
	t.Helper()
	const clients = 64
	size := 10_000_000 / clients
	if testenv.Long() {
		size *= 10
	}
	a, c := lossyLine(t)
	l, err := a.Listen("tcp", ":80")
	require.NoError(t, err)
	server := &http.Server{
		ReadHeaderTimeout: patience,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				h := sha256.New()
				_, err := io.Copy(h, r.Body)
				assert.NoError(t, err)
				fmt.Fprintf(w, "%x", h.Sum(nil))
				return
			}
			var seed uint64
			_, err := fmt.Sscanf(r.URL.Path, "/%d", &seed)
			assert.NoError(t, err)
			_, err = w.Write(text(seed, size))
			assert.NoError(t, err)
		}),
	}
	var wg sync.WaitGroup
	wg.Go(func() { assert.ErrorIs(t, server.Serve(l), http.ErrServerClosed) })
	transport := &http.Transport{DialContext: c.DialContext}
	client := &http.Client{Transport: transport}
	web := (&url.URL{Scheme: "http", Host: net.JoinHostPort(at, "80")}).String()
	var fetches sync.WaitGroup
	for i := range uint64(clients) {
		fetches.Go(func() {
			want := sha256.Sum256(text(i, size))
			if i%2 == 0 {
				got, err := fetch(client, http.MethodGet, fmt.Sprintf("%s/%d", web, i), nil)
				if assert.NoError(t, err) {
					assert.Equal(t, want, sha256.Sum256(got), "client %d", i)
				}
				return
			}
			got, err := fetch(client, http.MethodPut, web+"/", text(i, size))
			if assert.NoError(t, err) {
				assert.Equal(t, hex.EncodeToString(want[:]), string(got), "client %d", i)
			}
		})
	}
	fetches.Wait()
	transport.CloseIdleConnections()
	require.NoError(t, server.Close())
	wg.Wait()
}

func fetch(client *http.Client, method, url string, body []byte) ([]byte, error) {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// echoSize returns the number of bytes that the echo tests send.
func echoSize() int {
	if testenv.Long() {
		return 2_000_000
	}
	return 100_000
}

// echoed sends data and requires the same data back.
func echoed(t *testing.T, rw io.ReadWriter, closeWrite func() error) {
	t.Helper()
	want := text(99, echoSize())
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := rw.Write(want)
		assert.NoError(t, err)
		assert.NoError(t, closeWrite())
	})
	got, err := io.ReadAll(rw)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "%d of %d bytes", len(got), len(want))
	wg.Wait()
}

func TestTLSThroughALossyRouter(t *testing.T) { families(t, echoTLS) }

func echoTLS(t *testing.T, at string) {
	t.Helper()
	a, c := lossyLine(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(at)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	inner, err := a.Listen("tcp", net.JoinHostPort(at, "443"))
	require.NoError(t, err)
	l := tls.NewListener(inner, &tls.Config{Certificates: []tls.Certificate{{
		Certificate: [][]byte{der}, PrivateKey: key,
	}}})
	defer l.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		conn, err := l.Accept()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		_, err = io.Copy(conn, conn)
		assert.NoError(t, err)
	})
	raw, err := c.Dial("tcp", net.JoinHostPort(at, "443"))
	require.NoError(t, err)
	conn := tls.Client(raw, &tls.Config{RootCAs: roots, ServerName: at})
	defer conn.Close()
	echoed(t, conn, conn.CloseWrite)
	wg.Wait()
}

func TestSSHThroughALossyRouter(t *testing.T) { families(t, echoSSH) }

func echoSSH(t *testing.T, at string) {
	t.Helper()
	a, c := lossyLine(t)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	serverConfig := &ssh.ServerConfig{NoClientAuth: true}
	serverConfig.AddHostKey(signer)
	l, err := a.Listen("tcp", net.JoinHostPort(at, "22"))
	require.NoError(t, err)
	defer l.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		raw, err := l.Accept()
		if assert.NoError(t, err) {
			serveSSH(t, raw, serverConfig)
		}
	})
	raw, err := c.Dial("tcp", net.JoinHostPort(at, "22"))
	require.NoError(t, err)
	conn, chans, reqs, err := ssh.NewClientConn(raw, net.JoinHostPort(at, "22"), &ssh.ClientConfig{
		User: "tide", HostKeyCallback: ssh.FixedHostKey(signer.PublicKey()),
	})
	require.NoError(t, err)
	client := ssh.NewClient(conn, chans, reqs)
	channel, requests, err := client.OpenChannel("echo", nil)
	require.NoError(t, err)
	wg.Go(func() { ssh.DiscardRequests(requests) })
	echoed(t, channel, channel.CloseWrite)
	require.NoError(t, client.Close())
	wg.Wait()
}

// serveSSH echoes data on every channel of a connection.
func serveSSH(t *testing.T, raw net.Conn, config *ssh.ServerConfig) {
	t.Helper()
	conn, channels, requests, err := ssh.NewServerConn(raw, config)
	if !assert.NoError(t, err) {
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(requests)
	for offer := range channels {
		channel, requests, err := offer.Accept()
		if !assert.NoError(t, err) {
			return
		}
		go ssh.DiscardRequests(requests)
		_, err = io.Copy(channel, channel)
		assert.NoError(t, err)
		assert.NoError(t, channel.CloseWrite())
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for an expected event.
const patience = 20 * time.Second

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// open starts a node that is closed at the end of the test.
func open(tb testing.TB, cfg tidepool.Config) *tidepool.Node {
	tb.Helper()
	n, err := tidepool.Open(cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, n.Close()) })
	return n
}

// pair starts two nodes on a link in memory: 10.0.0.1 and 10.0.0.2.
func pair(tb testing.TB, cfg tidepool.Config) (a, b *tidepool.Node) {
	tb.Helper()
	x, y := tidepool.Pipe(0)
	return open(tb, host(cfg, "10.0.0.1/24", "", x)), open(tb, host(cfg, "10.0.0.2/24", "", y))
}

// twin returns the IPv6 address that stands for an IPv4 one: 2001:db8:1::2 for 10.1.0.2.
func twin(a netip.Addr) netip.Addr {
	b := a.As4()
	return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 5: b[1], 14: b[2], 15: b[3]})
}

// dual adds the twins of the addresses, neighbors and default routes.
func dual(cfg tidepool.Config) tidepool.Config {
	for i := range cfg.Interfaces {
		f := &cfg.Interfaces[i]
		f.IPv6 = []netip.Prefix{netip.PrefixFrom(twin(f.Addr.Addr()), 64)}
		for _, nb := range f.Neighbors {
			f.Neighbors = append(f.Neighbors, tidepool.Neighbor{Addr: twin(nb.Addr), UDP: nb.UDP})
		}
	}
	for _, r := range cfg.Routes {
		cfg.Routes = append(cfg.Routes, tidepool.Route{Prefix: prefix("::/0"), Via: twin(r.Via)})
	}
	return cfg
}

// families runs a test with the address of 10.0.0.1 and with its twin.
func families(t *testing.T, test func(t *testing.T, server string)) {
	t.Helper()
	for _, server := range []string{"10.0.0.1", "2001:db8::1"} {
		t.Run(server, func(t *testing.T) { test(t, server) })
	}
}

// host returns cfg with one interface and, if there is a gateway, a default route.
func host(
	cfg tidepool.Config, address, gateway string, end *tidepool.PipeEnd,
) tidepool.Config {
	cfg.Interfaces = []tidepool.Interface{{Addr: prefix(address), Link: end}}
	if gateway != "" {
		cfg.Routes = []tidepool.Route{{Prefix: prefix("0.0.0.0/0"), Via: addr(gateway)}}
	}
	return cfg
}

// line starts 10.0.0.1, a router and 10.1.0.2 on links in memory.
func line(tb testing.TB, cfg tidepool.Config) (a, router, c *tidepool.Node) {
	tb.Helper()
	ax, bx := tidepool.Pipe(0)
	by, cy := tidepool.Pipe(0)
	a = open(tb, dual(host(cfg, "10.0.0.1/24", "10.0.0.2", ax)))
	middle := cfg
	middle.Router = true
	middle.Interfaces = []tidepool.Interface{
		{Addr: prefix("10.0.0.2/24"), Link: bx}, {Addr: prefix("10.1.0.1/24"), Link: by},
	}
	router = open(tb, dual(middle))
	return a, router, open(tb, dual(host(cfg, "10.1.0.2/24", "10.1.0.1", cy)))
}

// udpLine is line over UDP sockets on the loopback.
func udpLine(tb testing.TB, cfg tidepool.Config) (a, router, c *tidepool.Node) {
	tb.Helper()
	ports := testenv.FreePorts(tb, 4)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	face := func(address string, own int, neighbor string, theirs int) tidepool.Interface {
		return tidepool.Interface{
			Addr: prefix(address), UDP: at(own),
			Neighbors: []tidepool.Neighbor{{Addr: addr(neighbor), UDP: at(theirs)}},
		}
	}
	left, middle, right := cfg, cfg, cfg
	left.Interfaces = []tidepool.Interface{face("10.0.0.1/24", 0, "10.0.0.2", 1)}
	left.Routes = []tidepool.Route{{Prefix: prefix("0.0.0.0/0"), Via: addr("10.0.0.2")}}
	middle.Router = true
	middle.Interfaces = []tidepool.Interface{
		face("10.0.0.2/24", 1, "10.0.0.1", 0), face("10.1.0.1/24", 2, "10.1.0.2", 3),
	}
	right.Interfaces = []tidepool.Interface{face("10.1.0.2/24", 3, "10.1.0.1", 2)}
	right.Routes = []tidepool.Route{{Prefix: prefix("0.0.0.0/0"), Via: addr("10.1.0.1")}}
	return open(tb, dual(left)), open(tb, dual(middle)), open(tb, dual(right))
}

// dial connects to a listener of the other node.
func dial(
	tb testing.TB, from, to *tidepool.Node, address string,
) (client, server *tidepool.Conn) {
	tb.Helper()
	l, err := to.ListenTCP(netip.MustParseAddrPort(address))
	require.NoError(tb, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err = from.DialTCP(ctx, l.Addr().(*net.TCPAddr).AddrPort())
	require.NoError(tb, err)
	server, err = l.AcceptTCP()
	require.NoError(tb, err)
	return client, server
}
