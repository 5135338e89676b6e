package operator

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// diag is a netlink socket of the programs' network namespace (sock_diag(7)).
type diag struct{ socket *os.File }

// These numbers are from linux/inet_diag.h: attributes, sizes, and offsets in struct inet_diag_msg.
const (
	diagInfo, diagCongestion = 2, 4
	diagRequestLen           = 56
	diagMessageLen           = 72
	diagTimer                = 2
	diagRetries              = 3
	diagPorts                = 4
	diagAddrs                = 8
	diagCookie               = 44
	diagExpires              = 52
	diagQueues               = 56
	diagTimeout              = time.Second // limit for the kernel, which answers at once
)

// maxProgramSockets limits the sockets in a list. Further sockets are omitted.
const maxProgramSockets = 4096

var native = binary.NativeEndian

// sockets lists the sockets, except those on the loopback interface, whose packets the node does
// not see.
func (d diag) sockets() (list []programSocket, err error) {
	wait := unix.NsecToTimeval(diagTimeout.Nanoseconds())
	fd := int(d.socket.Fd())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return nil, err
	}
	for _, family := range [...]uint8{unix.AF_INET, unix.AF_INET6} {
		for _, protocol := range [...]uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			if list, err = dump(fd, family, protocol, list); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// dump adds the sockets of one family and protocol.
func dump(fd int, family, protocol uint8, list []programSocket) ([]programSocket, error) {
	req := make([]byte, unix.SizeofNlMsghdr+diagRequestLen)
	native.PutUint32(req, uint32(len(req)))
	native.PutUint16(req[4:], unix.SOCK_DIAG_BY_FAMILY)
	native.PutUint16(req[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	req[16], req[17] = family, protocol
	req[18] = 1<<(diagInfo-1) | 1<<(diagCongestion-1)
	native.PutUint32(req[20:], ^uint32(0)) // all states
	if err := unix.Sendto(fd, req, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return nil, err
		}
		messages, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			switch {
			case m.Header.Type == unix.NLMSG_DONE, // complete, or the kernel lists no such sockets
				m.Header.Type == unix.NLMSG_ERROR:
				return list, nil
			case len(m.Data) < diagMessageLen || len(list) >= maxProgramSockets:
				continue
			}
			if s := parseDiag(m.Data, protocol); !s.Local.Addr().IsLoopback() {
				list = append(list, s)
			}
		}
	}
}

// kernelStates are TCP's states by their numbers in the kernel (net/tcp_states.h).
var kernelStates = [...]tcp.State{
	1: tcp.StateEstablished, tcp.StateSynSent, tcp.StateSynReceived, tcp.StateFinWait1,
	tcp.StateFinWait2, tcp.StateTimeWait, tcp.StateClosed, tcp.StateCloseWait, tcp.StateLastAck,
	tcp.StateListen, tcp.StateClosing, tcp.StateSynReceived,
}

// kernelTimers are the names of timers by their numbers.
var kernelTimers = [...]string{1: "on", "keepalive", "timewait", "persist"}

// parseDiag parses struct inet_diag_msg and its attributes.
func parseDiag(b []byte, protocol uint8) programSocket {
	at := func(port, addr int) netip.AddrPort {
		a := netip.AddrFrom16([16]byte(b[addr:])).Unmap()
		if b[0] == unix.AF_INET {
			a = netip.AddrFrom4([4]byte(b[addr:]))
		}
		return netip.AddrPortFrom(a, binary.BigEndian.Uint16(b[port:]))
	}
	s := programSocket{cookie: native.Uint64(b[diagCookie:])}
	s.Local, s.Remote = at(diagPorts, diagAddrs), at(diagPorts+2, diagAddrs+16)
	s.RecvQ = int(native.Uint32(b[diagQueues:]))
	s.SendQ = int(native.Uint32(b[diagQueues+4:]))
	if protocol == unix.IPPROTO_UDP {
		s.State = "UDP"
		return s
	}
	state := tcp.StateClosed
	if int(b[1]) < len(kernelStates) {
		state = kernelStates[b[1]]
	}
	s.State = stack.StateName(state)
	if t := int(b[diagTimer]); t > 0 && t < len(kernelTimers) {
		s.Timer = &control.Timer{
			Name: kernelTimers[t], Retries: int(b[diagRetries]),
			In: milliseconds(native.Uint32(b[diagExpires:])),
		}
	}
	if state == tcp.StateListen {
		return s
	}
	congestion := ""
	for rest := b[diagMessageLen:]; len(rest) >= unix.SizeofRtAttr; {
		size := int(native.Uint16(rest))
		if size < unix.SizeofRtAttr || size > len(rest) {
			break
		}
		value := rest[unix.SizeofRtAttr:size]
		switch native.Uint16(rest[2:]) {
		case diagInfo:
			s.Info = infoOf(value)
		case diagCongestion:
			congestion = strings.TrimRight(string(value), "\x00")
		}
		rest = rest[min(len(rest), (size+3)&^3):]
	}
	if s.Info != nil { // sockets in TIME-WAIT and SYN-RECEIVED have no Info
		s.Info.CongestionControl = congestion
	}
	return s
}

func milliseconds(n uint32) time.Duration { return time.Duration(n) * time.Millisecond }

func microseconds[N uint32 | uint64](n N) time.Duration {
	return time.Duration(n) * time.Microsecond
}

// These are options of struct tcp_info (linux/tcp.h).
const (
	optTimestamps = 1 << iota
	optSACK
	optScale
	optECN
)

// infoOf converts struct tcp_info, which is shorter on older kernels.
func infoOf(b []byte) *control.Info {
	var raw [unsafe.Sizeof(unix.TCPInfo{})]byte
	copy(raw[:], b)
	i := (*unix.TCPInfo)(unsafe.Pointer(&raw[0]))
	mss := int(i.Snd_mss)
	c := &control.Info{
		CAState: "open", SACK: i.Options&optSACK != 0, Timestamps: i.Options&optTimestamps != 0,
		ECN: i.Options&optECN != 0, Plain: i.Options == 0, SndWScale: -1, RcvWScale: -1,
		RTO: microseconds(i.Rto), RTT: microseconds(i.Rtt), RTTVar: microseconds(i.Rttvar),
		MinRTT: microseconds(i.Min_rtt), Backoff: int(i.Backoff), ATO: microseconds(i.Ato),
		SndMSS: mss, RcvMSS: int(i.Rcv_mss), AdvMSS: int(i.Advmss), PMTU: int(i.Pmtu),
		SndCwnd: int(i.Snd_cwnd) * mss, SndWnd: int(i.Snd_wnd), RcvWnd: int(i.Rcv_wnd),
		BytesSent: i.Bytes_sent, BytesAcked: i.Bytes_acked, BytesRetrans: i.Bytes_retrans,
		BytesReceived: i.Bytes_received, SegsOut: uint64(i.Segs_out), SegsIn: uint64(i.Segs_in),
		DataSegsOut: uint64(i.Data_segs_out), DataSegsIn: uint64(i.Data_segs_in),
		Delivered: uint64(i.Delivered), DeliveryRate: i.Delivery_rate * 8,
		DeliveryRateAppLimited: raw[7]&1 != 0, Unacked: int(i.Unacked), Lost: int(i.Lost),
		Sacked: int(i.Sacked), Retrans: int(i.Retrans),

		RcvOOOPack: uint64(i.Rcv_ooopack), Retransmits: int(i.Retransmits), Probes: int(i.Probes),
		TotalRTOTime: milliseconds(i.Total_rto_time),
		ECNMarks:     uint64(i.Received_ce), NotSentBytes: int(i.Notsent_bytes),
		RcvSpace: int(i.Rcv_space), RcvRTT: microseconds(i.Rcv_rtt),
		BusyTime: microseconds(i.Busy_time), RwndLimited: microseconds(i.Rwnd_limited),
		SndbufLimited: microseconds(i.Sndbuf_limited), LastDataSent: milliseconds(i.Last_data_sent),
		LastDataRecv: milliseconds(i.Last_data_recv), LastAckRecv: milliseconds(i.Last_ack_recv),
	}
	c.TotalRetrans, c.TotalRTO = uint64(i.Total_retrans), uint64(i.Total_rto)
	c.DSACKDups, c.ReordSeen = uint64(i.Dsack_dups), uint64(i.Reord_seen)
	const infinite = 1<<31 - 1 // kernel's TCP_INFINITE_SSTHRESH
	if i.Snd_ssthresh < infinite {
		c.SndSsthresh = int(i.Snd_ssthresh) * mss
	}
	if i.Min_rtt == ^uint32(0) { // there is no sample
		c.MinRTT = 0
	}
	if i.Pacing_rate != ^uint64(0) {
		c.PacingRate = i.Pacing_rate * 8
	}
	if i.Options&optScale != 0 {
		c.SndWScale, c.RcvWScale = int(raw[6]&15), int(raw[6]>>4)
	}
	switch i.Ca_state { // values TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss
	case 2, 3:
		c.CAState = "recovery"
	case 4:
		c.CAState = "loss"
	}
	c.Pipe = max(0, c.Unacked-c.Sacked-c.Lost+c.Retrans) * mss
	c.Limited = limitOf(c)
	return c
}

// limitOf returns what limits the data in flight, as far as the kernel's state shows that.
func limitOf(c *control.Info) string {
	switch waiting := c.NotSentBytes > 0; {
	case c.CAState != "open":
		return "recovery"
	case c.Unacked == 0 && !waiting:
		return "idle"
	case !waiting:
		return "app"
	case c.SndWnd > 0 && c.Unacked*c.SndMSS+c.SndMSS > c.SndWnd:
		return "rwnd"
	case c.Probes > 0:
		return "persist"
	case c.Pipe+c.SndMSS > c.SndCwnd:
		return "cwnd"
	}
	return "pacing"
}
