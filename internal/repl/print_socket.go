package repl

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// printSockets is the family's table. A connection whose Info was asked for gets the second line
// of ss -ti.
func printSockets(list []control.Socket) string {
	columns := []column{
		{"SID", 3, leftmost},
		{"LAddr", 11, 2},
		{"LPort", 6, 1},
		{"RAddr", 11, 2},
		{"RPort", 6, 1},
		{"Status", 13, 2},
	}
	rows := make([][]string, 0, len(list))
	for _, s := range list {
		rows = append(rows, []string{
			strconv.Itoa(s.SID),
			s.Local.Addr().String(), strconv.Itoa(int(s.Local.Port())),
			s.Remote.Addr().String(), strconv.Itoa(int(s.Remote.Port())),
			s.State,
		})
	}
	lines := strings.SplitAfter(table(columns, rows), "\n")
	var b strings.Builder
	b.WriteString(lines[0])
	for i, s := range list {
		b.WriteString(lines[i+1])
		if s.Info != nil {
			b.WriteString("\t " + printInfo(s.Info) + "\n")
		}
	}
	return b.String()
}

// fields collects the words of an ss line.
type fields []string

func (f *fields) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// count adds a number that ss leaves out when it is zero.
func (f *fields) count(name string, n uint64) {
	if n > 0 {
		f.add("%s:%d", name, n)
	}
}

// waited adds a time that ss leaves out when it is zero, and its share of another.
func (f *fields) waited(name string, d, of time.Duration) {
	switch {
	case d < time.Millisecond:
	case of <= 0:
		f.add("%s:%dms", name, d.Milliseconds())
	default:
		f.add("%s:%dms(%.1f%%)", name, d.Milliseconds(), 100*float64(d)/float64(of))
	}
}

// printInfo is a connection's inner state under ss's names and units: times in milliseconds, cwnd
// and ssthresh in segments. Behind them stands what ss has no name for.
func printInfo(i *control.Info) string {
	var f fields
	for _, o := range []struct {
		on   bool
		name string
	}{{i.Timestamps, "ts"}, {i.SACK, "sack"}, {i.ECN, "ecn"}} {
		if o.on {
			f.add("%s", o.name)
		}
	}
	f.add("%s", i.Congestion)
	f.path(i)
	f.traffic(i)
	f.outstanding(i)
	f.add("snd_wnd:%d rcv_wnd:%d", i.SendWindow, i.RecvWindow)
	f.count("rtos", i.Timeouts)
	f.count("tlps", i.TailProbes)
	f.count("probes", i.WindowProbes)
	f.count("undone", i.Undone)
	if i.Strategy != "" {
		f.add("recovery:%s", i.Strategy)
	}
	if i.Recovery != "" {
		f.add("state:%s", i.Recovery)
	}
	if i.Limited != "" {
		f.add("limited:%s since:%sms", i.Limited, millis(i.LimitedFor))
	}
	return strings.Join(f, " ")
}

// path adds what is known of the way, and the windows on it.
func (f *fields) path(i *control.Info) {
	if i.SendScale >= 0 {
		f.add("wscale:%d,%d", i.SendScale, i.RecvScale)
	}
	f.add("rto:%s", millis(i.RTO))
	f.count("backoff", uint64(max(0, i.Backoff)))
	if i.RTT > 0 {
		f.add("rtt:%s/%s", millis(i.RTT), millis(i.RTTVar))
	}
	if i.ATO > 0 {
		f.add("ato:%s", millis(i.ATO))
	}
	f.add("mss:%d pmtu:%d", i.MSS, i.PMTU)
	f.count("rcvmss", uint64(max(0, i.RecvMSS)))
	f.count("advmss", uint64(max(0, i.AdvMSS)))
	f.add("cwnd:%d", segments(i.Cwnd, i.MSS))
	if i.Ssthresh > 0 {
		f.add("ssthresh:%d", segments(i.Ssthresh, i.MSS))
	}
}

// traffic adds what went over it.
func (f *fields) traffic(i *control.Info) {
	f.count("bytes_sent", i.BytesSent)
	f.count("bytes_retrans", i.BytesRetrans)
	f.count("bytes_acked", i.BytesAcked)
	f.count("bytes_received", i.BytesReceived)
	f.count("segs_out", i.SegsOut)
	f.count("segs_in", i.SegsIn)
	f.count("data_segs_out", i.DataSegsOut)
	f.count("data_segs_in", i.DataSegsIn)
	if i.RTT > 0 {
		f.add("send %sbps", strconv.FormatFloat(float64(i.Cwnd)*8/i.RTT.Seconds(), 'f', 0, 64))
	}
	f.add("lastsnd:%d lastrcv:%d lastack:%d", i.LastSent.Milliseconds(),
		i.LastReceived.Milliseconds(), i.LastAck.Milliseconds())
	if i.PacingRate > 0 {
		f.add("pacing_rate %dbps", i.PacingRate)
	}
	if i.DeliveryRate > 0 {
		f.add("delivery_rate %dbps", i.DeliveryRate)
	}
	f.count("delivered", i.Delivered)
	if i.AppLimited {
		f.add("app_limited")
	}
}

// outstanding adds what is under way, and what it waits for.
func (f *fields) outstanding(i *control.Info) {
	f.waited("busy", i.BusyTime, 0)
	f.waited("rwnd_limited", i.RwndLimited, i.BusyTime)
	f.waited("sndbuf_limited", i.SndbufLimited, i.BusyTime)
	f.count("unacked", uint64(max(0, i.Unacked)))
	if i.Retransmits > 0 {
		f.add("retrans:%d/%d", i.Retrans, i.Retransmits)
	}
	f.count("lost", uint64(max(0, i.Lost)))
	f.count("sacked", uint64(max(0, i.Sacked)))
	f.count("dsack_dups", i.DSACKs)
	f.count("reord_seen", i.ReorderSeen)
	if i.RecvRTT > 0 {
		f.add("rcv_rtt:%s", millis(i.RecvRTT))
	}
	f.count("rcv_space", uint64(max(0, i.RecvSpace)))
	f.count("rcv_ssthresh", uint64(max(0, i.RecvBuffer)))
	f.count("notsent", uint64(max(0, i.NotSent)))
	if i.MinRTT > 0 {
		f.add("minrtt:%s", millis(i.MinRTT))
	}
	f.count("rcv_ooopack", i.OutOfOrder)
}

// millis is a time in milliseconds with at most three decimals.
func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Round(time.Microsecond).Microseconds())/1000, 'f', -1, 64)
}

// segments is a number of bytes in segments, as ss counts windows.
func segments(bytes, mss int) int {
	if mss <= 0 {
		return bytes
	}
	return bytes / mss
}

// printData shows what was read. A terminal sees it made harmless, a file sees it as it is.
func printData(e *env, d control.Data) string {
	text := string(d.Bytes)
	if e.interactive() {
		text = printable(text)
	}
	switch {
	case len(d.Bytes) > 0:
		return fmt.Sprintf("Read %d bytes: %s", len(d.Bytes), text)
	case d.EOF:
		return "Read 0 bytes: the peer has closed"
	default:
		return "Read 0 bytes"
	}
}
