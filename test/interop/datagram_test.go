//go:build linux

package interop_test

import (
	"bytes"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// UDP with the kernel at the other end: data in both directions, sizes up to the MTU, and the port
// unreachable messages that both ends send for a closed port.
func TestDatagramsWithTheKernel(t *testing.T) { both(t, testDatagramsWithTheKernel) }

func testDatagramsWithTheKernel(t *testing.T, f family) {
	f.report(t, &row{peer: "Linux", scenario: "UDP both ways, port unreachable"})
	b := newBed(t, f, 0, nil)
	var kernel net.PacketConn
	require.NoError(t, b.inside(func() (err error) {
		kernel, err = net.ListenPacket("udp"+f.digit(), f.colon(kernelIP, 5353))
		return err
	}))
	defer kernel.Close()
	ours, err := b.c.Node.Packets.Listen(f.at("0.0.0.0", 5354))
	require.NoError(t, err)
	defer ours.Close()
	soon := time.Now().Add(patience)
	require.NoError(t, kernel.SetDeadline(soon))
	require.NoError(t, ours.SetDeadline(soon))
	p := make([]byte, 2000)
	for _, n := range []int{0, 1, 7, 1000, 1372} {
		text := bytes.Repeat([]byte{byte(n)}, n)
		_, err := ours.WriteToAddrPort(text, f.at(kernelIP, 5353))
		require.NoError(t, err)
		got, from, err := kernel.ReadFrom(p)
		require.NoError(t, err)
		assert.Equal(t, text, p[:got])
		assert.Equal(t, f.colon(hostIP, 5354), from.String())
		_, err = kernel.WriteTo(text, from)
		require.NoError(t, err)
		got, back, err := ours.ReadFromAddrPort(p)
		require.NoError(t, err)
		assert.Equal(t, text, p[:got])
		assert.Equal(t, f.at(kernelIP, 5353), back)
	}

	t.Log("# a closed port")
	caller, err := b.c.Node.Packets.Dial(f.at(kernelIP, 9))
	require.NoError(t, err)
	defer caller.Close()
	require.NoError(t, caller.SetDeadline(soon))
	_, err = caller.Write([]byte("anybody?"))
	require.NoError(t, err)
	_, err = caller.Read(p)
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	var other net.Conn
	require.NoError(t, b.inside(func() (err error) {
		other, err = net.Dial("udp"+f.digit(), f.colon(hostIP, 9))
		return err
	}))
	defer other.Close()
	require.NoError(t, other.SetDeadline(soon))
	_, err = other.Write([]byte("anybody?"))
	require.NoError(t, err)
	_, err = other.Read(p)
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// socat echoes our client's datagrams.
func TestSocatEchoesDatagrams(t *testing.T) { both(t, testSocatEchoesDatagrams) }

func testSocatEchoesDatagrams(t *testing.T, f family) {
	need(t, "socat")
	f.report(t, &row{peer: "Linux, socat", scenario: "UDP echo"})
	b := newBed(t, f, 0, nil)
	b.start(b.command("socat", "UDP"+f.digit()+"-LISTEN:7,fork", "EXEC:cat"))
	c, err := b.c.Node.Packets.Dial(f.at(kernelIP, 7))
	require.NoError(t, err)
	defer c.Close()
	p := make([]byte, 2000)
	for i := range 20 {
		text := fmt.Sprintf("%d %0*d", i, 1+i*60, 7)
		for end := time.Now().Add(patience); ; { // socat may not be up yet
			require.True(t, time.Now().Before(end), "no echo")
			require.NoError(t, c.SetDeadline(time.Now().Add(time.Second)))
			if _, err := c.Write([]byte(text)); err != nil {
				require.ErrorIs(t, err, syscall.ECONNREFUSED)
				continue
			}
			n, err := c.Read(p)
			if err != nil {
				continue
			}
			if text == string(p[:n]) {
				break
			}
		}
	}
}
