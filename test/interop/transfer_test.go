//go:build linux

package interop_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// losses are the router's loss rates in percent, in each direction.
var losses = []float64{0, 1, 5}

// randomFile writes n incompressible bytes and returns the file and its SHA-256.
func (b *bed) randomFile(name string, n int64) (path, sum string) {
	b.t.Helper()
	path = b.path(name)
	f, err := os.Create(path)
	require.NoError(b.t, err)
	h := sha256.New()
	seed := [32]byte{byte(n)}
	_, err = io.CopyN(io.MultiWriter(f, h), rand.NewChaCha8(seed), n)
	require.NoError(b.t, err)
	require.NoError(b.t, f.Close())
	return path, hex.EncodeToString(h.Sum(nil))
}

// sumOf returns the SHA-256 of a file.
func sumOf(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	require.NoError(t, err)
	return hex.EncodeToString(h.Sum(nil))
}

// transferTime returns the time limit of a transfer of n bytes, at a hundred kilobytes a second.
func transferTime(n int64) time.Duration {
	return patience + time.Duration(n/100_000)*time.Second
}

// receive accepts one connection to C and returns the SHA-256 of the data.
func (b *bed) receive(port int, n int64) <-chan string {
	b.t.Helper()
	l := b.listen(port)
	require.NoError(b.t, l.SetDeadline(time.Now().Add(transferTime(n))))
	sum := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			sum <- err.Error()
			return
		}
		defer c.Close()
		h := sha256.New()
		got, err := io.Copy(h, c)
		if err != nil || got != n {
			sum <- fmt.Sprintf("%d bytes of %d: %v", got, n, err)
			return
		}
		sum <- hex.EncodeToString(h.Sum(nil))
	}()
	return sum
}

// fromSocat sends a file from the kernel to C.
func (b *bed) fromSocat(port int, n int64) time.Duration {
	b.t.Helper()
	path, want := b.randomFile("sent", n)
	sum := b.receive(port, n)
	start := time.Now()
	b.must(b.commandFor(transferTime(n), "socat", "-u", "-b65536", "OPEN:"+path,
		"TCP"+b.digit()+":"+b.colon(hostIP, port)))
	require.Equal(b.t, want, <-sum)
	return time.Since(start)
}

// toSocat sends a file from C to the kernel.
func (b *bed) toSocat(port int, n int64) time.Duration {
	b.t.Helper()
	path, want := b.randomFile("sent", n)
	target := b.path("received")
	socat := b.start(b.commandFor(transferTime(n), "socat", "-u", "-b65536",
		fmt.Sprintf("TCP%s-LISTEN:%d,reuseaddr", b.digit(), port), "OPEN:"+target+",creat,trunc,wronly"))
	f, err := os.Open(path)
	require.NoError(b.t, err)
	defer f.Close()
	c := b.dial(port)
	defer c.Close()
	start := time.Now()
	require.NoError(b.t, c.SetDeadline(start.Add(transferTime(n))))
	_, err = io.Copy(c, f)
	require.NoError(b.t, err)
	require.NoError(b.t, c.CloseWrite())
	socat.wait()
	took := time.Since(start)
	require.Equal(b.t, want, sumOf(b.t, target))
	return took
}

func TestSocat(t *testing.T) { both(t, testSocat) }

func testSocat(t *testing.T, f family) {
	need(t, "socat")
	for _, loss := range losses {
		t.Run(fmt.Sprintf("%g%%", loss), func(t *testing.T) {
			t.Run("socat sends", func(t *testing.T) {
				r := &row{peer: "Linux, socat", scenario: "socat sends, our listener receives", loss: loss}
				f.report(t, r)
				b := newBed(t, f, loss, nil)
				r.bytes = size(loss)
				r.took = b.fromSocat(9000, r.bytes)
			})
			t.Run("socat receives", func(t *testing.T) {
				r := &row{peer: "Linux, socat", scenario: "our client sends, socat receives", loss: loss}
				f.report(t, r)
				b := newBed(t, f, loss, nil)
				r.bytes = size(loss)
				r.took = b.toSocat(9001, r.bytes)
			})
		})
	}
}
