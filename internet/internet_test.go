package internet

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// echo runs an echo server on port 7 until the host ends.
func echo(h *Host) {
	ln, err := h.Listen("tcp", ":7")
	if err != nil {
		return
	}
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(c, c) // the client compares
			_ = c.Close()
		}()
	}
}

// serve starts echo, and waits until echo listens.
func serve(h *Host) {
	h.Go(echo)
	synctest.Wait()
}

// ask sends a word and waits for its echo.
func ask(c net.Conn, within time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("tide")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 4))
	return err
}

// Links have the delays of the file. Start returns when the routes exist.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Start(t, "link a r delay 20ms\nlink r b delay 5ms")
		w.AllowLeaks()
		serve(w.Host("a"))
		began := time.Now()
		c, err := w.Host("b").Dial("tcp", "a:7")
		require.NoError(t, err)
		require.NoError(t, ask(c, time.Second))
		assert.InDelta(t, 100*time.Millisecond, time.Since(began), 1e6, "two round trips")
	})
}

// The peer of a crashed host notices nothing. When the host runs again, it resets connections that
// it does not know.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Start(t, "link a r delay 20ms\nlink r b")
		w.AllowLeaks()
		serve(w.Host("a"))
		c, err := w.Host("b").Dial("tcp", "a:7")
		require.NoError(t, err)
		require.NoError(t, ask(c, time.Second))
		running := w.Host("a").Context()
		require.NoError(t, running.Err())
		w.Host("a").Crash()
		require.Error(t, running.Err())
		require.ErrorIs(t, ask(c, 30*time.Second), os.ErrDeadlineExceeded)
		_, err = w.Host("a").Dial("tcp", "b:7")
		require.ErrorIs(t, err, net.ErrClosed)

		w.Host("a").Restart(nil)
		require.NoError(t, w.Host("a").Context().Err())
		require.NoError(t, c.SetDeadline(time.Now().Add(2*time.Minute)))
		_, err = c.Read(make([]byte, 4))
		require.ErrorContains(t, err, "connection reset by peer")
		c, err = w.Host("b").Dial("tcp", "a:7")
		require.NoError(t, err)
		require.NoError(t, ask(c, time.Second))
	})
}

// A cut link changes routes. A partition that no route avoids stops all traffic; after healing it,
// the cut link is still cut.
func TestCutsAndPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Run(t, "../nets/ring")
		w.AllowLeaks()
		serve(w.Host("A"))
		c, err := w.Host("B").Dial("tcp", "A:7")
		require.NoError(t, err)
		require.NoError(t, ask(c, time.Second))
		for _, l := range w.links {
			if a, b := l.ends[0].host.name, l.ends[1].host.name; a[0] == 'R' && b[0] == 'R' {
				l.Cut()
				require.NoError(t, ask(c, time.Minute), "without %v", l)
				l.Restore()
				time.Sleep(30 * time.Second) // enough for routes to return
			}
		}
		var others []string
		for _, h := range w.hosts {
			if h.name != "A" {
				others = append(others, h.name)
			}
		}
		w.Link("R1", "R2").Cut()
		w.Partition([]string{"A"}, others)
		require.ErrorIs(t, ask(c, time.Minute), os.ErrDeadlineExceeded)
		w.Heal()
		assert.True(t, w.Link("R1", "R2").cut)
		c, err = w.Host("B").Dial("tcp", "A:7")
		require.NoError(t, err)
		require.NoError(t, ask(c, time.Minute))
	})
}

// A partition divides the hosts of a star, whose router is in no group: traffic within each group
// works, and packets between the groups are lost without an error.
func TestPartitionOfAStar(t *testing.T) {
	for _, family := range []string{"4", "6"} {
		synctest.Test(t, func(t *testing.T) {
			w := Start(t, "family "+family+"\nlink a r\nlink b r\nlink c r\nlink d r")
			dial := func(from, to string) error {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				c, err := w.Host(from).DialContext(ctx, "tcp", to+":7")
				if err == nil {
					err = errors.Join(ask(c, 10*time.Second), c.Close())
				}
				return err
			}
			for _, name := range []string{"a", "b", "c", "d"} {
				serve(w.Host(name))
			}
			w.Partition([]string{"a", "b"}, []string{"c", "d"})
			require.NoError(t, dial("a", "b"))
			require.NoError(t, dial("d", "c"))
			require.ErrorIs(t, dial("a", "c"), context.DeadlineExceeded)
			require.ErrorIs(t, dial("d", "b"), context.DeadlineExceeded)
			w.Partition([]string{"a", "c"}, []string{"b"})
			require.NoError(t, dial("a", "c"))
			require.NoError(t, dial("d", "b"), "d is in no group")
			require.ErrorIs(t, dial("a", "b"), context.DeadlineExceeded)
			w.Heal()
			require.NoError(t, dial("a", "b"))
		})
	}
}

// A host whose clock is wrong rejects a certificate.
func TestSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Start(t, "link a b delay 5ms")
		a := w.Host("a")
		assert.Equal(t, time.Now(), a.Now())
		a.Skew(-time.Minute, 0.5)
		<-time.After(time.Minute)
		assert.Equal(t, time.Now().Add(-30*time.Second), a.Now())

		now := time.Now()
		_, key, err := ed25519.GenerateKey(rand.Reader)
		require.NoError(t, err)
		form := &x509.Certificate{
			SerialNumber: big.NewInt(1), NotBefore: now, NotAfter: now.Add(time.Hour),
			DNSNames: []string{"b"}, IsCA: true, BasicConstraintsValid: true,
		}
		der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
		require.NoError(t, err)
		leaf, err := x509.ParseCertificate(der)
		require.NoError(t, err)
		roots := x509.NewCertPool()
		roots.AddCert(leaf)
		greet := func() error {
			client, server := w.NewConnPair("a", "b")
			defer client.Close()
			defer server.Close()
			go func() {
				_ = tls.Server(server, &tls.Config{Certificates: []tls.Certificate{{
					Certificate: [][]byte{der}, PrivateKey: key,
				}}}).Handshake() // the test checks the client's error
			}()
			return tls.Client(client, &tls.Config{
				RootCAs: roots, ServerName: "b", Time: a.Now,
			}).Handshake()
		}
		require.ErrorContains(t, greet(), "is before")
		a.Skew(0, 0)
		require.NoError(t, greet())
	})
}

func TestImpair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Start(t, "link a b")
		w.AllowLeaks()
		serve(w.Host("a"))
		c, err := w.Host("b").Dial("tcp", "a:7")
		require.NoError(t, err)
		w.At(time.Second, func() { w.Link("b", "a").Impair("delay 50ms") })
		time.Sleep(2 * time.Second)
		began := time.Now()
		require.NoError(t, ask(c, time.Second))
		assert.InDelta(t, 100*time.Millisecond, time.Since(began), 1e6)
	})
}

// failures is a testing.TB that records the failures of a test.
type failures struct {
	testing.TB
	said []string
}

func (m *failures) Errorf(format string, args ...any) {
	m.said = append(m.said, fmt.Sprintf(format, args...))
}

func (m *failures) Fatalf(format string, args ...any) {
	m.Errorf(format, args...)
	runtime.Goexit()
}

// An error in the network fails the test with a message that names the error and its position.
func TestErrors(t *testing.T) {
	net := func(text string) func(*failures) {
		return func(m *failures) { Start(m, text) }
	}
	in := func(text string, do func(w *World)) func(*failures) {
		return func(m *failures) { do(Start(m, text)) }
	}
	for name, row := range map[string]struct {
		do   func(*failures)
		want string
	}{
		"a wrong word": {net("link a b\nlink b c lost 1%"), `:2:10: .*"lost"`},
		"no file":      {func(m *failures) { Run(m, "testdata/none.net") }, `testdata/none.net`},
		"no files":     {func(m *failures) { Run(m, "testdata") }, `testdata has no .lnx files`},
		"a TUN device": {func(m *failures) { Run(m, "../nets/tun") }, `TUN device`},
		"machines": {
			net("host alpha ssh alpha\nlink a b\nnode a alpha"), "remove `host alpha ssh alpha`",
		},
		"no such host": {in("link a b", func(w *World) { w.Host("c") }), `no host c: there are a, b`},
		"no such link": {
			in("link a b\nlink b c", func(w *World) { w.Link("a", "c") }),
			`no link a - c: there are a - b, b - c`,
		},
		"wrong impairments": {
			in("link a b", func(w *World) { w.Link("a", "b").Impair("lost 1%") }), `link a - b: .*lost`,
		},
		"started twice": {
			in("link a b", func(w *World) { w.Host("a").Restart(nil) }), `a is running: crash it first`,
		},
		"no network": {net("\n"), `the network is empty`},
		"faults planned twice": {
			in("link a b", func(w *World) { w.Faults(2, time.Hour); w.Faults(2, time.Hour) }),
			`2 faults are planned already`,
		},
		"a program of a host that is down": {
			in("link a b", func(w *World) { w.Host("a").Crash(); w.Host("a").Go(func(*Host) {}) }),
			`host a is down: Restart`,
		},
		"crashed twice": {
			in("link a b", func(w *World) { w.Host("a").Crash(); w.Host("a").Crash() }), `a is down`,
		},
		"a partition of one group": {
			in("link a b", func(w *World) { w.Partition([]string{"a"}) }), `1 groups: must be two or more`,
		},
		"a partition with a host in two groups": {
			in("link a b", func(w *World) { w.Partition([]string{"a"}, []string{"b", "a"}) }),
			`host a is named twice`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &failures{TB: t}
				done := make(chan struct{})
				go func() { defer close(done); row.do(m) }()
				<-done
				require.NotEmpty(t, m.said)
				assert.Regexp(t, row.want, m.said[0])
			})
		})
	}
}

// A network of two hosts may take at most 1 ms of CPU time and 200 kB.
func BenchmarkWorldOfTwo(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		w := Start(b, "link a b")
		w.end()
	}
}
