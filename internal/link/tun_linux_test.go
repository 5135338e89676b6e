package link

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/checksum"
)

// tunPair returns a TUN device whose kernel is the other end of a socket pair. Like a TUN device,
// the pair preserves packet boundaries and accepts no packets when it is full.
func tunPair(t *testing.T, cfg TUNConfig) (d *TUN, kernel int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX,
		unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fds[1]) })
	cfg.Interface = Interface{Name: "tun0", ID: 3}
	d = newTUN(cfg.withDefaults(), &plainTUN{fd: fds[0]}, fds[0])
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d, fds[1]
}

// vnetPair is like tunPair, with a virtio-net header on every packet.
func vnetPair(t *testing.T, cfg TUNConfig) (d *TUN, kernel int) {
	t.Helper()
	d, kernel = tunPair(t, cfg)
	d.file = &vnetTUN{fd: d.fd, joins: true}
	return d, kernel
}

// give sends a packet from the kernel's end.
func give(t *testing.T, kernel int, h vnetHeader, packet []byte) {
	t.Helper()
	var b [vnetHeaderLen]byte
	h.put(&b)
	_, err := unix.Write(kernel, append(b[:], packet...))
	require.NoError(t, err)
}

func TestTUNReadsTrains(t *testing.T) {
	d, kernel := vnetPair(t, TUNConfig{})
	w := testPacket{proto: protoTCP, flags: tcpACK | tcpPSH, text: randomPayload(1, 40_000)}
	b, _ := w.packet()
	h := vnetHeader{flags: vnetNeedsChecksum, gso: vnetTCPv4, gsoSize: 1360}
	want := splitAll(t, h, b)
	other, _ := testPacket{proto: protoTCP, flags: tcpACK}.packet()
	give(t, kernel, vnetHeader{gso: 99}, b) // a header with an unknown type
	give(t, kernel, h, b)
	give(t, kernel, vnetHeader{}, other)
	_, err := unix.Write(kernel, make([]byte, vnetHeaderLen)) // contains only a header
	require.NoError(t, err)
	frames := make([]buffer.Frame, 4)
	n, err := d.ReadBatch(frames)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	assert.Equal(t, buffer.Frame{
		Data: bytes.Join(want, nil), Size: 1400, Iface: 3, Checked: true,
	}, frames[0])
	assert.Equal(t, buffer.Frame{Data: other, Size: 40, Iface: 3}, frames[1],
		"the packet is not from the kernel itself")
	c := d.Counters(3)
	assert.Equal(t, uint64(len(want)+1), c.RxPackets)
	assert.Equal(t, uint64(2), c.Drops[DropMalformed])
	assert.Zero(t, c.Oversize)
}

// Trains that fill the memory are read in several batches, without loss.
func TestTUNReadsManyTrains(t *testing.T) {
	d, kernel := vnetPair(t, TUNConfig{})
	b, _ := testPacket{proto: protoTCP, flags: tcpACK, text: randomPayload(1, 60_000)}.packet()
	frames := make([]buffer.Frame, 16)
	got := 0
	for sent := range 30 {
		give(t, kernel, vnetHeader{gso: vnetTCPv4, gsoSize: 300}, b)
		if sent%3 < 2 {
			continue
		}
		for {
			n, err := d.ReadBatch(frames)
			if errors.Is(err, ErrWouldBlock) {
				break
			}
			require.NoError(t, err)
			for _, f := range frames[:n] {
				got += (len(f.Data) + f.Size - 1) / f.Size
			}
		}
	}
	assert.Equal(t, 30*200, got)
}

func TestTUNWritesTrains(t *testing.T) {
	d, kernel := vnetPair(t, TUNConfig{})
	w := testPacket{proto: protoTCP, flags: tcpACK | tcpPSH, text: randomPayload(1, 40_000)}
	b, _ := w.packet()
	h := vnetHeader{flags: vnetNeedsChecksum, gso: vnetTCPv4, gsoSize: 1360}
	packets := splitAll(t, h, b)
	noise := train(rand.New(rand.NewPCG(1, 1)), 3, addrB, 100, 100)
	n, err := d.WriteBatch([]buffer.Train{trainOf(3, addrB, packets...), noise})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	var got [][]byte
	for i, m := range takeAll(t, kernel) {
		h, ok := parseVnet(m)
		require.True(t, ok)
		if i == 0 {
			require.Equal(t, uint8(vnetTCPv4), h.gso)
			require.Equal(t, packets, splitAll(t, h, m[vnetHeaderLen:]))
			continue
		}
		require.Equal(t, vnetHeader{}, h)
		got = append(got, m[vnetHeaderLen:])
	}
	assert.Equal(t, packetsOf(noise), got)
	c := d.Counters(3)
	assert.Equal(t, uint64(len(packets)+2), c.TxPackets)
	assert.Equal(t, uint64(3), d.Socket().Writes)
	wire := 200
	for _, p := range packets {
		wire += len(p)
	}
	assert.Equal(t, uint64(wire), c.TxBytes, "counted per packet")
}

// Packets that the kernel does not accept stay queued, and later writes continue from there.
func TestTUNQueuesTrains(t *testing.T) {
	d, kernel := vnetPair(t, TUNConfig{})
	var want, got [][]byte
	for i := 0; d.Pending() == 0; i++ {
		b, _ := testPacket{
			proto: protoTCP, flags: tcpACK, seq: uint32(i),
			text: randomPayload(uint64(i),
				40_000),
		}.packet()
		packets := splitAll(t, vnetHeader{gso: vnetTCPv4, gsoSize: 1360}, b)
		apart := bytes.Clone(packets[15])
		apart[30]++ // no longer part of the flow
		packets[15] = apart
		want = append(want, packets...)
		_, err := d.WriteBatch([]buffer.Train{trainOf(3, addrB, packets...)})
		require.NoError(t, err)
	}
	for {
		for _, m := range takeAll(t, kernel) {
			h, ok := parseVnet(m)
			require.True(t, ok)
			got = append(got, splitAll(t, h, m[vnetHeaderLen:])...)
		}
		if d.Pending() == 0 {
			break
		}
		_, err := d.WriteBatch(nil)
		require.NoError(t, err)
	}
	assert.Len(t, got, len(want))
	assert.Equal(t, want, got)
}

// takeAll reads the packets that have arrived at the kernel's end.
func takeAll(t *testing.T, kernel int) (packets [][]byte) {
	t.Helper()
	for {
		b := make([]byte, maxDatagram)
		n, err := unix.Read(kernel, b)
		if errors.Is(err, unix.EAGAIN) {
			return packets
		}
		require.NoError(t, err)
		packets = append(packets, b[:n])
	}
}

func TestTUNSendsOnePacketPerCall(t *testing.T) {
	d, kernel := tunPair(t, TUNConfig{})
	r := rand.New(rand.NewPCG(1, 1))
	trains := []buffer.Train{
		train(r, 3, addrB, 1400, 1400, 1400, 700), train(r, 3, addrC, 40), train(r, 3, addrB, 60, 60),
	}
	n, err := d.WriteBatch(trains)
	require.NoError(t, err)
	require.Equal(t, len(trains), n)
	var want [][]byte
	for i := range trains {
		want = append(want, packetsOf(trains[i])...)
	}
	assert.Equal(t, want, takeAll(t, kernel))
	c := d.Counters(3)
	assert.Equal(t, uint64(7), c.TxPackets)
	assert.Equal(t, uint64(4900+40+120), c.TxBytes)
	assert.Equal(t, uint64(7), d.Socket().Writes)
	assert.Zero(t, d.Counters(2))
}

func TestTUNJoinsPacketsOfOneSize(t *testing.T) {
	d, kernel := tunPair(t, TUNConfig{})
	r := rand.New(rand.NewPCG(2, 2))
	sizes := []int{1400, 1400, 900, 40, 40, 1401, 20, 21}
	var sent [][]byte
	for _, n := range sizes {
		tr := train(r, 3, addrB, n)
		sent = append(sent, packetsOf(tr)[0])
		_, err := unix.Write(kernel, sent[len(sent)-1])
		require.NoError(t, err)
	}
	frames := make([]buffer.Frame, 16)
	n, err := d.ReadBatch(frames)
	require.NoError(t, err)
	var shape [][2]int
	var got [][]byte
	for _, f := range frames[:n] {
		assert.Equal(t, 3, f.Iface)
		shape = append(shape, [2]int{f.Size, len(f.Data)})
		for data := f.Data; len(data) > 0; {
			k := min(f.Size, len(data))
			got = append(got, data[:k])
			data = data[k:]
		}
	}
	assert.Equal(t, [][2]int{{1400, 3700}, {40, 80}, {1401, 1421}, {21, 21}}, shape)
	assert.Equal(t, sent, got)
	c := d.Counters(3)
	assert.Equal(t, uint64(len(sizes)), c.RxPackets)
	assert.Equal(t, uint64(1), c.Oversize)
	_, err = d.ReadBatch(frames)
	assert.ErrorIs(t, err, ErrWouldBlock)
}

func TestTUNReadIsBounded(t *testing.T) {
	d, kernel := tunPair(t, TUNConfig{})
	r := rand.New(rand.NewPCG(3, 3))
	const packets = 100
	for i := range packets {
		tr := train(r, 3, addrB, 100+i%2)
		_, err := unix.Write(kernel, packetsOf(tr)[0])
		require.NoError(t, err)
	}
	frames := make([]buffer.Frame, 4)
	got := 0
	for got < packets {
		n, err := d.ReadBatch(frames)
		require.NoError(t, err)
		require.LessOrEqual(t, n, len(frames))
		for _, f := range frames[:n] {
			got += (len(f.Data) + f.Size - 1) / f.Size
		}
	}
	assert.Equal(t, packets, got)
}

func TestTUNQueuesRefusedPackets(t *testing.T) {
	d, kernel := tunPair(t, TUNConfig{QueuePackets: 200})
	r := rand.New(rand.NewPCG(4, 4))
	var want [][]byte
	for d.Room() >= 10 {
		tr := train(r, 3, addrB, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 999)
		n, err := d.WriteBatch([]buffer.Train{tr})
		require.NoError(t, err)
		require.Equal(t, 1, n, "the queue has room")
		want = append(want, packetsOf(tr)...)
	}
	require.Positive(t, d.Pending())
	assert.Positive(t, d.Socket().Blocked)
	refused := train(r, 3, addrB, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50)
	n, err := d.WriteBatch([]buffer.Train{refused})
	require.NoError(t, err)
	assert.Zero(t, n, "the queue is full")

	var got [][]byte
	for d.Pending() > 0 {
		got = append(got, takeAll(t, kernel)...)
		_, err := d.WriteBatch(nil)
		require.NoError(t, err)
	}
	got = append(got, takeAll(t, kernel)...)
	assert.Equal(t, want, got, "in order and once each")
	assert.Equal(t, uint64(len(want)), d.Counters(3).TxPackets)
}

// The descriptor of a deleted device would stay readable forever. The link closes it, and counts
// the packets that are still sent to the device.
func TestTUNDeviceDeleted(t *testing.T) {
	d, kernel := tunPair(t, TUNConfig{})
	require.NoError(t, unix.Shutdown(kernel, unix.SHUT_RDWR))
	_, err := d.ReadBatch(make([]buffer.Frame, 4))
	require.ErrorIs(t, err, ErrGone)
	assert.ErrorContains(t, err, "interface tun0")
	assert.Equal(t, -1, d.FD())
	_, err = d.ReadBatch(make([]buffer.Frame, 4))
	require.ErrorIs(t, err, ErrWouldBlock)
	n, err := d.WriteBatch([]buffer.Train{train(rand.New(rand.NewPCG(5, 5)), 3, addrB, 40, 40)})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, uint64(2), d.Counters(3).Drops[DropGone])
	assert.Zero(t, d.Pending())
}

// inNetns runs the test in its own network namespace.
func inNetns(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("skip: needs root")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	require.NoError(t, unix.Unshare(unix.CLONE_NEWNET))
}

func openTUNHere(t *testing.T, cfg TUNConfig) *TUN {
	t.Helper()
	cfg.Device = "tide0"
	cfg.Interface.Name, cfg.Interface.Local = "tun0", netip.AddrFrom4([4]byte{10, 9, 0, 1})
	d, err := OpenTUN(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

// await reads from the device until wanted accepts a packet.
func await(t *testing.T, d *TUN, wanted func([]byte) bool) []byte {
	t.Helper()
	frames := make([]buffer.Frame, 8)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		n, err := d.ReadBatch(frames)
		if errors.Is(err, ErrWouldBlock) {
			fds := []unix.PollFd{{Fd: int32(d.FD()), Events: unix.POLLIN}}
			_, _ = unix.Poll(fds, 100) // after an interrupt, the loop polls again
			continue
		}
		require.NoError(t, err)
		for _, f := range frames[:n] {
			if wanted(f.Data) {
				return f.Data
			}
		}
	}
	t.Fatal("no such packet arrived")
	return nil
}

// ping returns an echo request from the node's end of the link to the kernel's.
func ping(src, dst [4]byte) []byte {
	p := []byte{0x45, 0, 0, 40, 0, 0, 0, 0, 64, 1, 0, 0}
	p = append(append(p, src[:]...), dst[:]...)
	binary.BigEndian.PutUint16(p[10:], checksum.Checksum(p))
	m := []byte{8, 0, 0, 0, 0, 7, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	binary.BigEndian.PutUint16(m[2:], checksum.Checksum(m))
	return append(p, m...)
}

func TestTUNConfiguresTheKernelAndCarriesPackets(t *testing.T) {
	inNetns(t)
	for _, prefix := range []string{"10.9.0.2/24", "10.9.0.2/32"} {
		t.Run(prefix, func(t *testing.T) {
			inNetns(t)
			d := openTUNHere(t, TUNConfig{
				Interface: Interface{MTU: 1280}, Kernel: []netip.Prefix{netip.MustParsePrefix(prefix)},
			})
			assert.Equal(t, OffloadTUNGSO, d.Info().Offload)
			assert.Equal(t, defaultTUNQueue, d.Info().RecvPackets)
			f, err := net.InterfaceByName("tide0")
			require.NoError(t, err)
			assert.Equal(t, 1280, f.MTU)
			assert.NotZero(t, f.Flags&net.FlagUp)
			addrs, err := f.Addrs()
			require.NoError(t, err)
			require.Len(t, addrs, 1, "IPv4 alone")
			if prefix == "10.9.0.2/24" {
				assert.Equal(t, prefix, addrs[0].String())
			}
			src, dst := [4]byte{10, 9, 0, 1}, [4]byte{10, 9, 0, 2}
			request := ping(src, dst)
			n, err := d.WriteBatch([]buffer.Train{trainOf(0, dst, request)})
			require.NoError(t, err)
			require.Equal(t, 1, n)
			reply := await(t, d, func(b []byte) bool { return b[9] == 1 && b[20] == 0 })
			assert.Equal(t, request[24:], reply[24:])
		})
	}
}

func TestTUNOpenErrors(t *testing.T) {
	inNetns(t)
	first := openTUNHere(t, TUNConfig{})
	_, err := OpenTUN(first.cfg)
	require.ErrorIs(t, err, unix.EBUSY)
	assert.Equal(t, "link: interface tun0: tun:tide0: device or resource busy (another node running?)",
		err.Error())
	for name, want := range map[string]string{
		"lo": "another kind", "": "1 to 15", "a name": "1 to 15", "sixteencharacter": "1 to 15",
		"x/../y": "1 to 15", "%d": "1 to 15",
	} {
		_, err := OpenTUN(TUNConfig{Device: name, Interface: Interface{Name: "tun0"}})
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), want)
		assert.Contains(t, err.Error(), "interface tun0")
	}
	assert.Contains(t, openAdvice(unix.ENOENT), "modprobe tun")
	_, err = OpenTUN(TUNConfig{Device: "t0", Routes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	assert.ErrorContains(t, err, "a route to 10.0.0.0/8 needs addresses of its family")
	_, err = OpenTUN(TUNConfig{
		Device: "t0", Interface: Interface{MTU: 1279}, Kernel: []netip.Prefix{netip.MustParsePrefix("fd09::2/64")},
	})
	assert.ErrorContains(t, err, "MTU 1279: must be at least 1280 for IPv6")
}

// becomeUser changes only this thread to an ordinary user without privileges.
func becomeUser(t *testing.T, user int) {
	t.Helper()
	_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(user), uintptr(user), uintptr(user))
	require.Zero(t, errno)
}

const nobody = 65534

func runIP(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("ip")
	if err != nil {
		t.Skip("skip: needs iproute2")
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	require.NoError(t, err, string(out))
}

// openTUNFile opens /dev/net/tun while the thread may still open it.
func openTUNFile(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open(tunPath, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestTUNPermissionErrors(t *testing.T) {
	inNetns(t)
	kernel := netip.MustParsePrefix("10.9.0.2/24")
	cfg := TUNConfig{
		Device: "tide0", Kernel: []netip.Prefix{kernel}, Interface: Interface{Name: "tun0", Local: netip.AddrFrom4([4]byte{10, 9, 0, 1})},
	}.withDefaults()
	withRoutes := cfg
	withRoutes.Routes = []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")}
	runIP(t, "link", "set", "lo", "up")
	first, second, third, fourth := openTUNFile(t), openTUNFile(t), openTUNFile(t), openTUNFile(t)
	runIP(t, "tuntap", "add", "dev", "mine", "mode", "tun", "user", "65534")
	runIP(t, "tuntap", "add", "dev", "ready", "mode", "tun", "user", "65534")
	runIP(t, "address", "add", "10.9.0.2/24", "dev", "ready")
	runIP(t, "link", "set", "ready", "mtu", "1400", "up")
	runIP(t, "route", "add", "10.30.0.0/16", "via", "10.9.0.1")
	// In a container even root may lack the capability.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all, none [2]unix.CapUserData
	require.NoError(t, unix.Capget(&header, &all[0]))
	none = all
	none[0].Effective = 0
	require.NoError(t, unix.Capset(&header, &none[0]))
	_, err := OpenTUN(cfg)
	assert.EqualError(t, err, "link: interface tun0: tun:tide0: operation not permitted (CAP_NET_ADMIN "+
		"is missing: a container needs --cap-add NET_ADMIN --device /dev/net/tun)")
	require.NoError(t, unix.Capset(&header, &all[0]))

	becomeUser(t, nobody)
	if _, err := OpenTUN(cfg); !errors.Is(err, unix.EPERM) { // some systems let every user open it
		assert.EqualError(t, err, "link: interface tun0: tun:tide0: open /dev/net/tun: permission denied "+
			"(run as root; or let all users open it, which gives them no access to the network: "+
			"sudo chmod 666 /dev/net/tun)")
	}
	_, err = attach(cfg, first)
	assert.ErrorIs(t, err, unix.EPERM)
	assert.ErrorContains(t, err, "CAP_NET_ADMIN is missing: sudo setcap cap_net_admin+ep /")
	assert.ErrorContains(t, err, "or run by hand: sudo ip tuntap add dev tide0 mode tun user $USER)")

	cfg.Device = "mine"
	_, err = attach(cfg, second)
	assert.ErrorContains(t, err,
		"tun:mine: set MTU: operation not permitted; set address: operation "+
			"not permitted; bring up: operation not permitted (CAP_NET_ADMIN is missing: ")
	assert.ErrorContains(t, err, "sudo ip address add 10.9.0.2/24 dev mine && "+
		"sudo ip link set mine mtu 1400 up)")

	withRoutes.Device = "ready"
	_, err = attach(withRoutes, third)
	assert.ErrorContains(t, err, "tun:ready: a route to 10.20.0.0/16: operation not permitted "+
		"(CAP_NET_ADMIN is missing; or run by hand: sudo ip route add 10.20.0.0/16 via 10.9.0.1)")
	unix.Close(third) // frees the device; the cleanup ignores the error of the second close

	withRoutes.Routes = []netip.Prefix{netip.MustParsePrefix("10.30.0.0/16")}
	d, err := attach(withRoutes, fourth)
	require.NoError(t, err, "root has configured everything")
	request := ping([4]byte{10, 9, 0, 1}, [4]byte{10, 9, 0, 2})
	_, err = d.WriteBatch([]buffer.Train{trainOf(0, addrB, request)})
	require.NoError(t, err)
	reply := await(t, d, func(b []byte) bool { return b[9] == 1 && b[20] == 0 })
	assert.Equal(t, request[24:], reply[24:])
}

func TestTUNAddsKernelRoutes(t *testing.T) {
	inNetns(t)
	wide, narrow := netip.MustParsePrefix("10.20.0.0/16"), netip.MustParsePrefix("10.30.1.2/32")
	cfg := TUNConfig{
		Kernel: []netip.Prefix{netip.MustParsePrefix("10.9.0.2/24")}, Routes: []netip.Prefix{wide, narrow},
	}
	cfg.Device = "tide0"
	cfg.Interface = Interface{Name: "tun0", Local: netip.AddrFrom4([4]byte{10, 9, 0, 1})}
	d, err := OpenTUN(cfg)
	require.NoError(t, err)
	routes := func() string {
		out, err := exec.Command("ip", "route").CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	assert.Contains(t, routes(), "10.20.0.0/16 via 10.9.0.1 dev tide0")
	assert.Contains(t, routes(), "10.30.1.2 via 10.9.0.1 dev tide0")

	other := cfg
	other.Device, other.Kernel = "tide1", []netip.Prefix{netip.MustParsePrefix("10.10.0.2/24")}
	other.Interface.Local = netip.AddrFrom4([4]byte{10, 10, 0, 1})
	other.Routes = []netip.Prefix{netip.MustParsePrefix("10.40.0.0/16"), wide}
	_, err = OpenTUN(other)
	assert.ErrorContains(t, err, "a route to 10.20.0.0/16: file exists "+
		"(this machine routes it over tide0: sudo ip route del 10.20.0.0/16, or remove it from `routes`)")
	assert.NotContains(t, routes(), "10.40.0.0/16", "no route is left after an error")

	require.NoError(t, d.Close())
	assert.NotContains(t, routes(), "10.20.0.0/16")
}

// addressesOf returns the addresses that the kernel lists for a device.
func addressesOf(t *testing.T, device string) string {
	t.Helper()
	out, err := exec.Command("ip", "address", "show", "dev", device).CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// The kernel configures addresses and routes of both families on one device, and joins trains of
// IPv6.
func TestTUNCarriesIPv6(t *testing.T) {
	inNetns(t)
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
		t.Skip("skip: needs IPv6 in the kernel")
	}
	wide, narrow := netip.MustParsePrefix("fd20::/16"), netip.MustParsePrefix("fd30::1/128")
	cfg := TUNConfig{
		Device: "tide0", Kernel: []netip.Prefix{netip.MustParsePrefix("10.9.0.2/24"), netip.MustParsePrefix("fd09::2/64")},
		Routes: []netip.Prefix{wide, netip.MustParsePrefix("10.20.0.0/16"), narrow},
		Interface: Interface{
			Name: "tun0", Local: netip.MustParseAddr("10.9.0.1"),
			Others: []netip.Addr{netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fd09::1")},
		},
	}
	d, err := OpenTUN(cfg)
	require.NoError(t, err)
	assert.Contains(t, addressesOf(t, "tide0"), "inet6 fd09::2/64")
	assert.Contains(t, addressesOf(t, "tide0"), "inet 10.9.0.2/24")
	require.Len(t, d.Neighbors(0), 2)
	routes := func() string {
		out, err := exec.Command("ip", "-6", "route").CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	assert.Contains(t, routes(), "fd20::/16 via fd09::1 dev tide0")
	assert.Contains(t, routes(), "fd30::1 via fd09::1 dev tide0")

	t.Log("# the kernel answers an echo request")
	src, dst := cfg.Interface.Others[1], cfg.Kernel[1].Addr()
	p := append([]byte{0x60, 0, 0, 0, 0, 12, 58, 64}, src.AsSlice()...)
	p = append(append(p, dst.AsSlice()...), 128, 0, 0, 0, 0, 7, 0, 1, 1, 2, 3, 4)
	binary.BigEndian.PutUint16(p[42:],
		^checksum.Fold(checksum.Sum(p[40:], checksum.PseudoHeader(src, dst, 58, 12))))
	_, err = d.WriteBatch([]buffer.Train{trainOf(0, addrB, p)})
	require.NoError(t, err)
	reply := await(t, d, func(b []byte) bool { return b[0]>>4 == 6 && b[6] == 58 && b[40] == 129 })
	assert.Equal(t, p[44:], reply[44:])

	t.Log("# it takes a train in one call, and refuses it as a whole")
	packet := testPacket{v6: true, proto: protoTCP, flags: tcpACK, text: randomPayload(1, 40_000)}
	b, _ := packet.packet()
	copy(b[8:], src.AsSlice())
	copy(b[24:], dst.AsSlice())
	packets := splitAll(t, vnetHeader{gso: vnetTCPv6, gsoSize: 1340}, b)
	before := d.Socket().Writes
	_, err = d.WriteBatch([]buffer.Train{trainOf(0, addrB, packets...)})
	require.NoError(t, err)
	assert.Equal(t, before+1, d.Socket().Writes)
	assert.Zero(t, d.Counters(0).Drops[DropRefused])
	await(t, d, func(b []byte) bool { return b[0]>>4 == 6 && b[6] == protoTCP && b[53]&4 != 0 })

	t.Log("# a second device cannot take its route")
	other := cfg
	other.Device, other.Kernel = "tide1", []netip.Prefix{netip.MustParsePrefix("fd10::2/64")}
	other.Interface.Others = []netip.Addr{netip.MustParseAddr("fd10::1")}
	other.Routes = []netip.Prefix{netip.MustParsePrefix("fd40::/16"), wide}
	_, err = OpenTUN(other)
	assert.ErrorContains(t, err, "this machine routes it over tide0: sudo ip route del fd20::/16")
	assert.NotContains(t, routes(), "fd40::/16")

	t.Log("# the kernel's end is set up again after it was down")
	runIP(t, "link", "set", "tide0", "down")
	assert.NotContains(t, routes(), "fd20::/16")
	require.NoError(t, d.Raise())
	require.NoError(t, d.Raised())
	assert.Contains(t, routes(), "fd20::/16 via fd09::1 dev tide0")
	require.NoError(t, d.Close())
	assert.NotContains(t, routes(), "fd20::/16")
}

// The kernel's end can be set down, and can be deleted.
func TestTUNWhoseKernelEndIsDownOrDeleted(t *testing.T) {
	inNetns(t)
	d := openTUNHere(t, TUNConfig{})
	request := ping([4]byte{10, 9, 0, 1}, [4]byte{10, 9, 0, 2})
	n, err := d.WriteBatch([]buffer.Train{trainOf(0, addrB, request)})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, uint64(1), d.Counters(0).Drops[DropKernelDown])
	assert.True(t, d.Down())
	runIP(t, "link", "set", "tide0", "up")
	_, err = d.WriteBatch([]buffer.Train{trainOf(0, addrB, request)})
	require.NoError(t, err)
	assert.False(t, d.Down())
	path, err := exec.LookPath("ip")
	if err != nil {
		t.Skip("skip: needs iproute2")
	}
	out, err := exec.Command(path, "link", "del", "tide0").CombinedOutput()
	require.NoError(t, err, string(out))
	_, err = d.ReadBatch(make([]buffer.Frame, 4))
	require.ErrorIs(t, err, ErrGone)
	assert.Equal(t, -1, d.FD())
}

// If the kernel refuses a joined packet, it gets that packet and all later ones one by one.
func TestTUNWithoutSegmentationInTheKernel(t *testing.T) {
	inNetns(t)
	d := openTUNHere(t, TUNConfig{
		Kernel: []netip.Prefix{netip.MustParsePrefix("10.9.0.2/24")}, Offload: OffloadPlain,
	})
	assert.Equal(t, OffloadTUN, d.Info().Offload)
	file := &vnetTUN{fd: d.fd, joins: true} // the device expects no header
	d.file = file
	b, _ := testPacket{proto: protoTCP, flags: tcpACK, text: randomPayload(1, 4000)}.packet()
	packets := splitAll(t, vnetHeader{gso: vnetTCPv4, gsoSize: 1360}, b)
	n, err := d.WriteBatch([]buffer.Train{trainOf(0, addrB, packets...)})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.False(t, file.joins)
	assert.Equal(t, uint64(3), d.Counters(0).Drops[DropRefused], "each by itself")
	assert.Zero(t, d.Pending())
}

// Trains cross in both directions without an allocation.
func TestTUNAllocatesNothing(t *testing.T) {
	d, kernel := vnetPair(t, TUNConfig{})
	b, _ := testPacket{proto: protoTCP, flags: tcpACK, text: randomPayload(1, 40_000)}.packet()
	h := vnetHeader{flags: vnetNeedsChecksum, gso: vnetTCPv4, gsoSize: 1360}
	var header [vnetHeaderLen]byte
	h.put(&header)
	sent := append(header[:], b...)
	trains := []buffer.Train{trainOf(3, addrB, splitAll(t, h, b)...)}
	frames, got := make([]buffer.Frame, 4), make([]byte, maxDatagram)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if n, err := d.WriteBatch(trains); n != 1 || err != nil {
			panic("it was not sent")
		}
		if n, err := unix.Read(kernel, got); n != len(sent) || err != nil {
			panic("it was not one packet")
		}
		if _, err := unix.Write(kernel, sent); err != nil {
			panic(err)
		}
		if n, err := d.ReadBatch(frames); n != 1 || err != nil {
			panic("it not received")
		}
	}))
}
