package tidepool

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// Conn is a TCP connection. It implements net.Conn, and its options have the
// names and meanings that they have in net.TCPConn. Its errors are *net.OpErrors
// in which errors.Is finds os.ErrDeadlineExceeded, net.ErrClosed and the numbers
// of the system: syscall.ECONNREFUSED, ECONNRESET, ETIMEDOUT and so on.
type Conn struct{ conn *node.Conn }

var _ net.Conn = (*Conn)(nil)

// Read waits for data and copies it into p. It returns io.EOF when the peer has
// closed its side and everything was read.
func (c *Conn) Read(p []byte) (int, error) { return c.inner().Read(p) }

// Write copies p into the send buffer, waiting while that is full. That it
// returns says nothing about delivery.
func (c *Conn) Write(p []byte) (int, error) { return c.inner().Write(p) }

// Close closes both directions and returns at once, unless SetLinger says
// otherwise. What was written is still delivered; if data was left unread, the peer
// gets a reset.
func (c *Conn) Close() error { return c.inner().Close() }

// CloseWrite ends what the peer reads, behind all that was written: a half-close. Reading
// goes on, and Write fails with syscall.EPIPE.
func (c *Conn) CloseWrite() error { return c.inner().CloseWrite() }

// CloseRead discards what comes from now on, and what was not read yet: Read returns
// io.EOF. The peer is not told, and not stalled.
func (c *Conn) CloseRead() error { return c.inner().CloseRead() }

// LocalAddr returns a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return c.inner().LocalAddr() }

// RemoteAddr returns a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr { return c.inner().RemoteAddr() }

// SetDeadline sets the read and the write deadline: from then on, calls that wait and
// those to come fail with os.ErrDeadlineExceeded until another is set. They are times of
// the node's Clock, if it has one; the zero time means never.
func (c *Conn) SetDeadline(t time.Time) error { return c.inner().SetDeadline(t) }

// SetReadDeadline has Read give up at t; the zero time means never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.inner().SetReadDeadline(t) }

// SetWriteDeadline has Write give up at t; the zero time means never.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.inner().SetWriteDeadline(t) }

// Listener takes TCP connections. It implements net.Listener.
type Listener struct{ listener *node.Listener }

var _ net.Listener = (*Listener)(nil)

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err // not a *Conn that is nil
	}
	return c, nil
}

// AcceptTCP is Accept with the connection in its own type.
func (l *Listener) AcceptTCP() (*Conn, error) {
	c, err := l.inner().AcceptTCP()
	if err != nil {
		return nil, err
	}
	return &Conn{c}, nil
}

// Close stops listening. Connections that nobody has accepted are reset.
func (l *Listener) Close() error { return l.inner().Close() }

// Addr returns a *net.TCPAddr.
func (l *Listener) Addr() net.Addr { return l.inner().Addr() }

// SetDeadline has Accept give up at t; the zero time means never.
func (l *Listener) SetDeadline(t time.Time) error { return l.inner().SetDeadline(t) }

// SetNoDelay sends small segments at once, which is the default, or lets them
// wait while data is unacknowledged.
func (c *Conn) SetNoDelay(noDelay bool) error { return c.inner().SetNoDelay(noDelay) }

// SetCork holds back segments that are not full, for 200 ms at the most, or lets
// them go: TCP_CORK.
func (c *Conn) SetCork(cork bool) error { return c.inner().SetCork(cork) }

// SetMaxSeg bounds the payload of the segments sent from now on, in bytes; 0:
// only the path does.
func (c *Conn) SetMaxSeg(bytes int) error { return c.inner().SetMaxSeg(bytes) }

// SetCongestionControl changes the algorithm to one of TCP.CongestionControl's names; the
// new one starts from the window that the old one had reached. Another name is
// syscall.EINVAL.
func (c *Conn) SetCongestionControl(name string) error {
	return c.inner().SetCongestionControl(name)
}

// SetUserTimeout bounds how long what was written may stay unacknowledged before
// the connection fails with ETIMEDOUT; 0: the number of retries decides.
func (c *Conn) SetUserTimeout(d time.Duration) error { return c.inner().SetUserTimeout(d, false) }

// SetKeepAlive has a silent peer asked whether it is still there, or no more.
func (c *Conn) SetKeepAlive(keepalive bool) error { return c.inner().SetKeepAlive(keepalive) }

// SetKeepAlivePeriod sets how long the peer has to be silent before it is asked,
// and the time between the questions.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error { return c.inner().SetKeepAlivePeriod(d) }

// SetKeepAliveConfig sets when and how often a silent peer is asked. A field that
// is not positive is net's default: 15 s, 15 s and 9 times.
func (c *Conn) SetKeepAliveConfig(config net.KeepAliveConfig) error {
	return c.inner().SetKeepAliveConfig(config)
}

// SetLinger sets what Close does about data that was not delivered yet. If sec is
// negative, the default, Close returns at once and the node goes on delivering. If
// it is 0 the connection is reset. If it is positive, Close waits so many seconds
// for the peer's acknowledgment, and then resets the connection.
func (c *Conn) SetLinger(sec int) error { return c.inner().SetLinger(sec) }

// SetReadBuffer sets the receive buffer in bytes, as net has it and not doubled as Linux
// does. It no longer tunes itself then. A size out of bounds is syscall.EINVAL.
func (c *Conn) SetReadBuffer(bytes int) error { return c.inner().SetReadBuffer(bytes) }

// SetWriteBuffer sets the send buffer in bytes, as SetReadBuffer sets the other.
func (c *Conn) SetWriteBuffer(bytes int) error { return c.inner().SetWriteBuffer(bytes) }

// SetTOS sets the traffic class of what is sent from now on: the field of the IP
// header, whose lower two bits are left to ECN.
func (c *Conn) SetTOS(tos uint8) error { return c.inner().SetTOS(tos) }

// ConnInfo is what a connection knows of itself and of its path. What Linux's TCP_INFO
// has bears its name here too, in Go's form: tcpi_snd_cwnd is SndCwnd. Windows are in
// bytes where Linux counts segments, rates are in bits per second.
type ConnInfo struct {
	// State is RFC 9293 §3.3.2's name, with underscores.
	State string
	// CAState is where loss recovery stands: open, recovery or loss.
	CAState string
	// CongestionControl is the algorithm's name, and Strategy that of loss recovery: gbn,
	// newreno, sack or rack.
	CongestionControl, Strategy string

	// SACK, Timestamps and ECN were agreed on in the handshake; Plain: nothing was.
	SACK, Timestamps, ECN, Plain bool
	// SndWScale and RcvWScale are the shifts of the windows; -1: not agreed on.
	SndWScale, RcvWScale int

	// RTT and RTTVar are RFC 6298's smoothed round trip and its variation, MinRTT the
	// shortest lately, LatestRTT the last; 0: none was measured.
	RTT, RTTVar, MinRTT, LatestRTT time.Duration
	// RTO is the retransmission time-out, ATO how long an acknowledgment may wait.
	RTO, ATO time.Duration
	// UserTimeout is SetUserTimeout's; 0: none.
	UserTimeout time.Duration

	// SndMSS and RcvMSS are the payload of segments sent and received, AdvMSS what our SYN
	// offered, PMTU the largest packet that the path takes, all in bytes.
	SndMSS, RcvMSS, AdvMSS, PMTU int
	// SndCwnd and SndSsthresh are the congestion window and where slow start ends, in
	// bytes; a threshold of 0: no loss has set one.
	SndCwnd, SndSsthresh int
	// PipeACK is what was in flight lately at the most (RFC 7661 §4.2), in bytes; 0:
	// undefined.
	PipeACK int
	// SndWnd and RcvWnd are how many bytes each end has been told that it may send.
	SndWnd, RcvWnd int
	// Pipe is how many bytes are in flight (RFC 6675).
	Pipe int
	// NotSentBytes wait to be sent for the first time, and Unread to be read.
	NotSentBytes, Unread int
	// SndBuf and RcvBuf are the buffers as they are now, in bytes.
	SndBuf, RcvBuf int
	// RcvRTT is the round trip as the receiver sees it, and RcvSpace the most that was
	// read in one, in bytes.
	RcvRTT   time.Duration
	RcvSpace int

	// BytesSent counts what BytesRetrans does too, BytesAcked what the peer has.
	BytesSent, BytesRetrans, BytesAcked, BytesReceived uint64
	// SegsOut and SegsIn count segments, DataSegsOut and DataSegsIn those with text.
	SegsOut, SegsIn, DataSegsOut, DataSegsIn uint64
	// Delivered counts segments that the peer has reported, in order or not.
	Delivered uint64
	// DeliveryRate is how fast they were lately, PacingRate how fast they may leave, in
	// bits per second; 0: not measured, and not paced.
	DeliveryRate, PacingRate uint64
	// DeliveryRateAppLimited says that the rate is the application's, not the path's.
	DeliveryRateAppLimited bool

	// Unacked counts the segments in flight; of these Lost are thought lost, Sacked were
	// reported received, Retrans sent again.
	Unacked, Lost, Sacked, Retrans int
	// TotalRetrans counts the segments that were ever sent again, LostRetransmits those of
	// them that were lost too.
	TotalRetrans, LostRetransmits uint64
	// FastRecoveries counts recoveries without a time-out, Undone those of all that were
	// not needed.
	FastRecoveries, Undone uint64
	// TotalRTO counts retransmission time-outs, TotalRTORecoveries the silences that they
	// were in, and TotalRTOTime how long those were.
	TotalRTO, TotalRTORecoveries uint64
	TotalRTOTime                 time.Duration
	// TailProbes and WindowProbes count those of RFC 8985 §7 and RFC 9293 §3.8.6.1.
	TailProbes, WindowProbes uint64
	// Retransmits, Backoff and Probes are the time-outs, their doublings and the window
	// probes since the last answer.
	Retransmits, Backoff, Probes int
	// DSACKDups counts what the peer had twice, DupAcks its duplicate acknowledgments, and
	// ReordSeen what it got in disorder.
	DSACKDups, DupAcks, ReordSeen uint64
	// OutOfOrder is how many ranges are held that came early, RcvOOOPack how many segments
	// ever did.
	OutOfOrder int
	RcvOOOPack uint64
	// ECNMarks counts segments that came marked, ECNEchoes reductions for marks of ours.
	ECNMarks, ECNEchoes uint64

	// Limited is why no more is in flight: app, cwnd, rwnd, sndbuf, pacing, nagle, cork,
	// persist, recovery, handshake, idle or none; LimitedFor is since when.
	Limited    string
	LimitedFor time.Duration
	// BusyTime is how long there was something to send; of it RwndLimited was spent
	// waiting for the peer's window, SndbufLimited for room in the send buffer.
	BusyTime, RwndLimited, SndbufLimited time.Duration
	// LastDataSent, LastDataRecv and LastAckRecv are how long ago that was; 0: never.
	LastDataSent, LastDataRecv, LastAckRecv time.Duration
}

// String returns the most of it in a line, as ss -ti does.
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

// Info returns the connection's state, after its end the last. It fails once the
// node is closed.
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
