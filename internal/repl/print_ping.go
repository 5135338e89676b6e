package repl

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// printReply is the line of one reply, as iputils prints it.
func printReply(r *control.Reply, size int, stamps bool) string {
	stamp := ""
	if stamps {
		stamp = fmt.Sprintf("[%d.%06d] ", r.At.Unix(), r.At.Nanosecond()/1000)
	}
	switch {
	case r.Late:
		return fmt.Sprintf("%sno answer yet for icmp_seq=%d", stamp, r.Seq)
	case r.Problem != "":
		return fmt.Sprintf("%sFrom %s icmp_seq=%d %s", stamp, r.From, r.Seq, printable(r.Problem))
	}
	text := fmt.Sprintf("%s%d bytes from %s: icmp_seq=%d ttl=%d",
		stamp, r.Size, r.From, r.Seq, r.TTL)
	if r.Size < size+8 {
		return text + " (truncated)"
	}
	text += " time=" + pingMillis(r.RTT) + " ms"
	for _, remark := range []struct {
		holds bool
		text  string
	}{
		{r.Duplicate, " (DUP!)"},
		{r.Damaged, " (BAD CHECKSUM!)"},
		{r.Elsewhere, " (DIFFERENT ADDRESS!)"},
	} {
		if remark.holds {
			text += remark.text
		}
	}
	if r.Wrong != nil {
		text += printWrong(r.Wrong)
	}
	return text
}

// printWrong shows data that is not what was sent, from the first row with a wrong byte.
func printWrong(w *control.WrongData) string {
	var b strings.Builder
	got := byte(0)
	if w.At < len(w.Data) {
		got = w.Data[w.At]
	}
	fmt.Fprintf(&b, "\nwrong data byte #%d should be 0x%x but was 0x%x", w.At, w.Want, got)
	const row = 32
	for i := range w.Data {
		if i%row == 0 {
			fmt.Fprintf(&b, "\n#%d\t", i)
		}
		fmt.Fprintf(&b, "%x ", w.Data[i])
	}
	return b.String()
}

// pingMillis has three significant digits, as iputils prints a round trip.
func pingMillis(d time.Duration) string {
	us := d.Microseconds()
	switch {
	case us >= 100_000-50:
		return fmt.Sprintf("%d", (us+500)/1000)
	case us >= 10_000-5:
		return fmt.Sprintf("%d.%01d", (us+50)/1000, (us+50)%1000/100)
	case us >= 1000:
		return fmt.Sprintf("%d.%02d", (us+5)/1000, (us+5)%1000/10)
	}
	return fmt.Sprintf("%d.%03d", us/1000, us%1000)
}

// printPing is the statistics of a ping, as iputils prints them.
func printPing(req *control.Ping, p *control.PingResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n--- %s ping statistics ---\n%d packets transmitted, %d received",
		req.Addr, p.Sent, p.Received)
	for _, count := range []struct {
		n    int
		name string
	}{{p.Duplicates, "duplicates"}, {p.Corrupted, "corrupted"}, {p.Errors, "errors"}} {
		if count.n > 0 {
			fmt.Fprintf(&b, ", +%d %s", count.n, count.name)
		}
	}
	if p.Sent > 0 {
		loss := float32(100 * float64(p.Sent-p.Received) / float64(p.Sent))
		fmt.Fprintf(&b, ", %.6g%% packet loss, time %dms", loss,
			p.Elapsed.Round(time.Millisecond).Milliseconds())
	}
	b.WriteString("\n")
	var parts []string
	if p.Received > 0 {
		parts = append(parts, fmt.Sprintf("rtt min/avg/max/mdev = %s/%s/%s/%s ms",
			pingExact(p.Min), pingExact(p.Avg), pingExact(p.Max), pingExact(p.Mdev)))
	}
	if p.Pipe > 1 {
		parts = append(parts, fmt.Sprintf("pipe %d", p.Pipe))
	}
	if p.Received > 0 && p.Sent > 1 && (req.Flood || req.Adaptive) {
		parts = append(parts, fmt.Sprintf("ipg/ewma %s/%s ms",
			pingExact(p.Elapsed/time.Duration(p.Sent-1)), pingExact(p.EWMA)))
	}
	b.WriteString(strings.Join(parts, ", ") + "\n")
	return b.String()
}

// pingExact cuts a time off behind the microsecond.
func pingExact(d time.Duration) string {
	us := d.Microseconds()
	return fmt.Sprintf("%d.%03d", us/1000, us%1000)
}
