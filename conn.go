package tidepool

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// Conn is a TCP connection. It implements net.Conn. Its options have the names and meanings of
// net.TCPConn's. Errors are *net.OpErrors; errors.Is finds os.ErrDeadlineExceeded, net.ErrClosed
// and the system's error numbers in them: syscall.ECONNREFUSED, ECONNRESET, ETIMEDOUT and so on.
type Conn struct{ conn *node.Conn }

var _ net.Conn = (*Conn)(nil)

// Read waits for data and copies it into p. It returns io.EOF when the peer has closed its side and
// all data has been read.
func (c *Conn) Read(p []byte) (int, error) { return c.inner().Read(p) }

// Write copies p into the send buffer and blocks while the buffer is full. It does not wait for
// delivery.
func (c *Conn) Write(p []byte) (int, error) { return c.inner().Write(p) }

// Close closes both directions. It returns at once unless SetLinger says otherwise, and data that
// was written is still delivered. If received data was not read, the peer gets a reset.
func (c *Conn) Close() error { return c.inner().Close() }

// Reset resets the connection at both ends, as a firewall does that has lost its state: the peer
// gets a RST, and calls at both ends return syscall.ECONNRESET.
func (c *Conn) Reset() error { return node.Reset(c.inner()) }

// CloseWrite sends a FIN after all data that was written (a half-close). Read still works; Write
// fails with syscall.EPIPE.
func (c *Conn) CloseWrite() error { return c.inner().CloseWrite() }

// CloseRead discards received data that was not read and all that arrives later: Read returns
// io.EOF. The peer is not informed and can still send.
func (c *Conn) CloseRead() error { return c.inner().CloseRead() }

// LocalAddr returns a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return c.inner().LocalAddr() }

// RemoteAddr returns a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr { return c.inner().RemoteAddr() }

// SetDeadline sets the read and the write deadline. After the deadline, pending and later calls
// fail with os.ErrDeadlineExceeded until another deadline is set. Deadlines are times of the node's
// Clock, if it has one. The zero time means no deadline.
func (c *Conn) SetDeadline(t time.Time) error { return c.inner().SetDeadline(t) }

// SetReadDeadline sets the deadline of Read. The zero time means no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.inner().SetReadDeadline(t) }

// SetWriteDeadline sets the deadline of Write. The zero time means no deadline.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.inner().SetWriteDeadline(t) }

// Listener accepts TCP connections. It implements net.Listener.
type Listener struct{ listener *node.Listener }

var _ net.Listener = (*Listener)(nil)

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err // a nil *Conn would be a non-nil net.Conn
	}
	return c, nil
}

// AcceptTCP is like Accept, but returns a *Conn.
func (l *Listener) AcceptTCP() (*Conn, error) {
	return connOf(l.inner().AcceptTCP())
}

func connOf(c *node.Conn, err error) (*Conn, error) {
	if err != nil {
		return nil, err
	}
	return &Conn{c}, nil
}

// Close stops listening. Connections that were not accepted are reset.
func (l *Listener) Close() error { return l.inner().Close() }

// Addr returns a *net.TCPAddr.
func (l *Listener) Addr() net.Addr { return l.inner().Addr() }

// SetDeadline sets the deadline of Accept. The zero time means no deadline.
func (l *Listener) SetDeadline(t time.Time) error { return l.inner().SetDeadline(t) }

// SetNoDelay with true, the default, sends small segments at once. With false it enables Nagle's
// algorithm.
func (c *Conn) SetNoDelay(noDelay bool) error { return c.inner().SetNoDelay(noDelay) }

// SetCork with true holds back segments that are not full for up to 200 ms, as TCP_CORK does. With
// false it sends them.
func (c *Conn) SetCork(cork bool) error { return c.inner().SetCork(cork) }

// SetMaxSeg limits the payload of segments that are sent from now on, in bytes. 0: only the path
// limits it.
func (c *Conn) SetMaxSeg(bytes int) error { return c.inner().SetMaxSeg(bytes) }

// SetCongestionControl changes the algorithm to one that TCP.CongestionControl lists. The new
// algorithm starts with the current window. Other names return syscall.EINVAL.
func (c *Conn) SetCongestionControl(name string) error {
	return c.inner().SetCongestionControl(name)
}

// SetUserTimeout limits how long written data may stay unacknowledged before the connection fails
// with ETIMEDOUT. 0: the number of retransmissions is the limit.
func (c *Conn) SetUserTimeout(d time.Duration) error { return c.inner().SetUserTimeout(d, false) }

// SetKeepAlive enables or disables keep-alive probes.
func (c *Conn) SetKeepAlive(keepalive bool) error { return c.inner().SetKeepAlive(keepalive) }

// SetKeepAlivePeriod sets the idle time before the first keep-alive probe and the time between
// probes.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error { return c.inner().SetKeepAlivePeriod(d) }

// SetKeepAliveConfig sets the idle time, the interval and the number of keep-alive probes. Fields
// that are not positive mean the defaults of package net: 15 s, 15 s and 9 probes.
func (c *Conn) SetKeepAliveConfig(config net.KeepAliveConfig) error {
	return c.inner().SetKeepAliveConfig(config)
}

// SetLinger sets what Close does with data that is not yet delivered. If sec is negative, the
// default, Close returns at once and the node continues to deliver. If sec is 0, the connection is
// reset. If sec is positive, Close waits up to sec seconds for the acknowledgment, and then resets
// the connection.
func (c *Conn) SetLinger(sec int) error { return c.inner().SetLinger(sec) }

// SetReadBuffer sets the size of the receive buffer in bytes, and disables its automatic growth.
// Unlike Linux, the node does not double the size. A size out of range returns syscall.EINVAL.
func (c *Conn) SetReadBuffer(bytes int) error { return c.inner().SetReadBuffer(bytes) }

// SetWriteBuffer is SetReadBuffer for the send buffer.
func (c *Conn) SetWriteBuffer(bytes int) error { return c.inner().SetWriteBuffer(bytes) }

// SetTOS sets the TOS field of the IP header of packets that are sent from now on. Its lower two
// bits are ECN's and not changed.
func (c *Conn) SetTOS(tos uint8) error { return c.inner().SetTOS(tos) }

// ConnInfo is the state of a connection. Fields that exist in Linux's TCP_INFO have the same names
// in Go's form: tcpi_snd_cwnd is SndCwnd. Windows are in bytes, where Linux counts segments; rates
// are in bits per second.
type ConnInfo struct {
	// State is the name from RFC 9293 §3.3.2, with underscores.
	State string
	// CAState is the state of loss recovery: open, recovery or loss.
	CAState string
	// CongestionControl is the algorithm's name. Strategy is the algorithm for loss recovery: gbn,
	// newreno, sack or rack.
	CongestionControl, Strategy string

	// SACK, Timestamps and ECN were negotiated in the handshake. Plain: no option was negotiated.
	SACK, Timestamps, ECN, Plain bool
	// SndWScale and RcvWScale are the window scale shifts. -1: not negotiated.
	SndWScale, RcvWScale int

	// RTT and RTTVar are the smoothed round-trip time and its variation (RFC 6298). MinRTT is the
	// recent minimum, LatestRTT the last sample. 0: not measured.
	RTT, RTTVar, MinRTT, LatestRTT time.Duration
	// RTO is the retransmission timeout, ATO the longest delay of an acknowledgment.
	RTO, ATO time.Duration
	// UserTimeout is the value of SetUserTimeout. 0: none.
	UserTimeout time.Duration

	// SndMSS and RcvMSS are the largest payloads of segments sent and received, AdvMSS is the MSS
	// that our SYN announced, PMTU the path MTU; all in bytes.
	SndMSS, RcvMSS, AdvMSS, PMTU int
	// SndCwnd is the congestion window and SndSsthresh the slow start threshold, in bytes. A
	// threshold of 0: not yet set by a loss.
	SndCwnd, SndSsthresh int
	// PipeACK is the recent maximum of data in flight (RFC 7661 §4.2) in bytes. 0: undefined.
	PipeACK int
	// SndWnd is the peer's window and RcvWnd ours, in bytes.
	SndWnd, RcvWnd int
	// Pipe is the data in flight in bytes (RFC 6675).
	Pipe int
	// NotSentBytes were written and not yet sent. Unread bytes were received and not yet read.
	NotSentBytes, Unread int
	// SndBuf and RcvBuf are the current buffer sizes in bytes.
	SndBuf, RcvBuf int
	// RcvRTT is the round-trip time that the receiver measured. RcvSpace is the largest number of
	// bytes that the application read in one RcvRTT.
	RcvRTT   time.Duration
	RcvSpace int

	// BytesSent includes BytesRetrans. BytesAcked were acknowledged by the peer.
	BytesSent, BytesRetrans, BytesAcked, BytesReceived uint64
	// SegsOut and SegsIn count all segments, DataSegsOut and DataSegsIn those with payload.
	SegsOut, SegsIn, DataSegsOut, DataSegsIn uint64
	// Delivered counts the segments that the peer acknowledged, cumulatively or by SACK.
	Delivered uint64
	// DeliveryRate is the recent rate of delivery, PacingRate the current rate of sending, in bits
	// per second. 0: not measured, not paced.
	DeliveryRate, PacingRate uint64
	// DeliveryRateAppLimited: the application limited the rate, not the path.
	DeliveryRateAppLimited bool

	// Unacked counts the segments in flight. Of these, Lost are considered lost, Sacked were
	// acknowledged by SACK, and Retrans were retransmitted.
	Unacked, Lost, Sacked, Retrans int
	// TotalRetrans counts all retransmitted segments, LostRetransmits those that were lost again.
	TotalRetrans, LostRetransmits uint64
	// FastRecoveries counts recoveries without a timeout, Undone all recoveries that proved to be
	// unnecessary.
	FastRecoveries, Undone uint64
	// TotalRTO counts retransmission timeouts, TotalRTORecoveries the periods of consecutive
	// timeouts, and TotalRTOTime the total length of these periods.
	TotalRTO, TotalRTORecoveries uint64
	TotalRTOTime                 time.Duration
	// TailProbes (RFC 8985 §7) and WindowProbes (RFC 9293 §3.8.6.1) count the probes sent.
	TailProbes, WindowProbes uint64
	// Retransmits, Backoff and Probes are the timeouts, the doublings of the timeout and the window
	// probes since the last acknowledgment.
	Retransmits, Backoff, Probes int
	// DSACKDups counts duplicates that the peer reported, DupAcks its duplicate acknowledgments,
	// and ReordSeen the segments that it received out of order.
	DSACKDups, DupAcks, ReordSeen uint64
	// OutOfOrder is the number of out-of-order ranges in the receive buffer, RcvOOOPack the number
	// of segments that arrived out of order.
	OutOfOrder int
	RcvOOOPack uint64
	// ECNMarks counts received segments with a congestion mark, ECNEchoes the window reductions
	// because the peer reported marks.
	ECNMarks, ECNEchoes uint64

	// Limited is what limits the data in flight: app, cwnd, rwnd, sndbuf, pacing, nagle, cork,
	// persist, recovery, handshake, idle or none. LimitedFor is how long this has been the limit.
	Limited    string
	LimitedFor time.Duration
	// BusyTime is the time during which there was data to send. Of it, RwndLimited was spent
	// waiting for the peer's window and SndbufLimited for space in the send buffer.
	BusyTime, RwndLimited, SndbufLimited time.Duration
	// LastDataSent, LastDataRecv and LastAckRecv are the times since the last data was sent, the
	// last data was received and the last acknowledgment was received. 0: never.
	LastDataSent, LastDataRecv, LastAckRecv time.Duration
}

// String returns a summary in one line, similar to that of ss -ti.
func (i ConnInfo) String() string {
	var b strings.Builder
	word := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	b.WriteString(i.State)
	word("%s", i.CongestionControl)
	if i.SndWScale >= 0 {
		word("wscale:%d,%d", i.SndWScale, i.RcvWScale)
	}
	word("rto:%v rtt:%v/%v mss:%d pmtu:%d cwnd:%d", i.RTO, i.RTT, i.RTTVar, i.SndMSS, i.PMTU,
		i.SndCwnd)
	if i.SndSsthresh > 0 {
		word("ssthresh:%d", i.SndSsthresh)
	}
	word("bytes_sent:%d bytes_acked:%d bytes_received:%d", i.BytesSent, i.BytesAcked,
		i.BytesReceived)
	if i.TotalRetrans > 0 {
		word("retrans:%d/%d", i.Retrans, i.TotalRetrans)
	}
	word("pipe:%d notsent:%d unread:%d snd_wnd:%d rcv_wnd:%d delivery_rate:%dbps limited:%s",
		i.Pipe, i.NotSentBytes, i.Unread, i.SndWnd, i.RcvWnd, i.DeliveryRate, i.Limited)
	return b.String()
}

// Info returns the connection's state. After the connection has ended it returns the last state. It
// fails once the node is closed.
func (c *Conn) Info() (ConnInfo, error) {
	s, err := c.inner().Socket()
	if err != nil {
		return ConnInfo{}, err
	}
	return connInfo(s.State, s.Info), nil
}

func connInfo(state string, i *control.Info) ConnInfo {
	return ConnInfo{
		State:             state,
		CongestionControl: i.Congestion, Strategy: i.Strategy, CAState: i.Recovery,
		SACK: i.SACK, Timestamps: i.Timestamps, ECN: i.ECN,
		Plain: i.Plain, SndWScale: i.SendScale, RcvWScale: i.RecvScale,
		RTT: i.RTT, RTTVar: i.RTTVar, MinRTT: i.MinRTT, RTO: i.RTO, LatestRTT: i.LatestRTT,
		ATO: i.ATO, UserTimeout: i.UserTimeout,
		SndMSS: i.MSS, RcvMSS: i.RecvMSS, AdvMSS: i.AdvMSS, PMTU: i.PMTU,
		SndCwnd: i.Cwnd, SndSsthresh: i.Ssthresh, PipeACK: i.PipeACK,
		SndWnd: i.SendWindow, RcvWnd: i.RecvWindow, Pipe: i.Pipe,
		NotSentBytes: i.NotSent, Unread: i.Unread,
		SndBuf: i.SendBuffer, RcvBuf: i.RecvBuffer,
		RcvRTT: i.RecvRTT, RcvSpace: i.RecvSpace,
		BytesSent: i.BytesSent, BytesRetrans: i.BytesRetrans,
		BytesAcked: i.BytesAcked, BytesReceived: i.BytesReceived,
		SegsOut: i.SegsOut, SegsIn: i.SegsIn,
		DataSegsOut: i.DataSegsOut, DataSegsIn: i.DataSegsIn, Delivered: i.Delivered,
		DeliveryRate: i.DeliveryRate, PacingRate: i.PacingRate,
		DeliveryRateAppLimited: i.AppLimited,
		Unacked:                i.Unacked, Lost: i.Lost, Sacked: i.Sacked, Retrans: i.Retrans,
		TotalRetrans: i.Retransmits, LostRetransmits: i.LostRetransmits,
		FastRecoveries: i.FastRecoveries, Undone: i.Undone,
		TotalRTO: i.Timeouts, TotalRTORecoveries: i.TimeoutEpisodes, TotalRTOTime: i.TimeoutTime,
		TailProbes: i.TailProbes, WindowProbes: i.WindowProbes,
		Retransmits: i.Retries, Backoff: i.Backoff, Probes: i.Probes,
		DSACKDups: i.DSACKs, DupAcks: i.DupAcks, ReordSeen: i.ReorderSeen,
		OutOfOrder: i.Early, RcvOOOPack: i.OutOfOrder,
		ECNMarks: i.ECNMarks, ECNEchoes: i.ECNEchoes,
		Limited: i.Limited, LimitedFor: i.LimitedFor,
		BusyTime: i.BusyTime, RwndLimited: i.RwndLimited, SndbufLimited: i.SndbufLimited,
		LastDataSent: i.LastSent, LastDataRecv: i.LastReceived,
		LastAckRecv: i.LastAck,
	}
}
