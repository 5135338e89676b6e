//go:build linux

package lead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidepool-net/tidepool/bench/end"
	"github.com/tidepool-net/tidepool/internal/control"
)

// Impaired is the measured effect of an impairment that was set in a node's shell.
type Impaired struct {
	Words string  // arguments of the command after `impair if0 out`
	What  string  // what was measured
	Got   float64 // in Unit
	Unit  string
	Note  string
}

// Sizes of the transfers over impaired links.
const (
	echoes     = 100
	manyEchoes = 10_000
	fileBytes  = 2_500_000 // two seconds at 10 Mbit/s
	filePort   = 9000
)

// Impair impairs the link between two real nodes through their shells, and measures the effect on
// pings and files.
func (p *Program) Impair(ctx context.Context) (list []Impaired, err error) {
	udp, err := loopback(2)
	if err != nil {
		return nil, err
	}
	near := end.Spec{Sides: []end.Side{side(udp[0], udp[1], clientNear, serverAddr)}}
	far := end.Spec{Sides: []end.Side{side(udp[1], udp[0], serverAddr, clientNear)}}
	l := pair{dir: p.Dir}
	if l.far, err = p.Run(ctx, "far", end.Describe(&far)); err != nil {
		return nil, err
	}
	defer l.far.Kill()
	if l.near, err = p.Run(ctx, "near", end.Describe(&near)); err != nil {
		return nil, err
	}
	defer l.near.Kill()
	for _, try := range []func() (Impaired, error){l.delay, l.loss, l.rate, l.codel} {
		one, err := try()
		if err != nil {
			return list, fmt.Errorf("impair %s: %w", one.Words, err)
		}
		list = append(list, one)
	}
	return list, nil
}

// pair is two nodes and the link between them.
type pair struct {
	near, far *Shell
	dir       string
}

func (l *pair) delay() (Impaired, error) {
	one := Impaired{Words: "delay 20ms", What: "least RTT of 100 pings", Unit: "ms"}
	r, err := l.ping(one.Words, echoes, "-i 0.01")
	one.Got = r.Min.Seconds() * 1e3
	one.Note = fmt.Sprintf("mean %.2f ms", r.Avg.Seconds()*1e3)
	return one, err
}

func (l *pair) loss() (Impaired, error) {
	one := Impaired{Words: "loss 2%", What: "share of 10,000 pings", Unit: "%"}
	r, err := l.ping(one.Words, manyEchoes, "-f")
	one.Got = 100 * float64(r.Sent-r.Received) / float64(max(1, r.Sent))
	one.Note = fmt.Sprintf("%d of %d; the standard deviation is 0.14", r.Sent-r.Received, r.Sent)
	return one, err
}

func (l *pair) rate() (Impaired, error) {
	one := Impaired{
		Words: "rate 10mbit limit 1000", What: "a file of 2.5 MB, with headers", Unit: "Mbit/s",
	}
	sent, passed, _, err := l.file(one.Words)
	if err != nil {
		return one, err
	}
	one.Got = float64(passed) * 8 / sent.Seconds / 1e6
	one.Note = fmt.Sprintf("RTT %.1f ms at its end", sent.RTT.Seconds()*1e3)
	return one, nil
}

func (l *pair) codel() (Impaired, error) {
	one := Impaired{
		Words: "rate 10mbit codel delay 20ms", What: "RTT at the end of a file of 2.5 MB",
		Unit: "ms",
	}
	sent, _, dropped, err := l.file(one.Words)
	one.Got = sent.RTT.Seconds() * 1e3
	one.Note = fmt.Sprintf("%d drops", dropped)
	return one, err
}

// impair sets impairments of the link to the far node, and returns the link's counters.
func (l *pair) impair(words string) (link control.Impairment, err error) {
	var ways []control.Impairment
	if err := l.near.answer("impair if0 out "+words+" --json", &ways); err != nil {
		return link, err
	}
	return outLink(ways)
}

// outLink returns the outgoing direction of the link.
func outLink(ways []control.Impairment) (link control.Impairment, err error) {
	for _, w := range ways {
		if w.Way == control.WayOut {
			return w, nil
		}
	}
	return link, fmt.Errorf("the link has no outgoing direction: %v", ways)
}

func (l *pair) ping(words string, count int, how string) (r control.PingResult, err error) {
	if _, err := l.impair(words); err != nil {
		return r, err
	}
	return r, l.near.answer(fmt.Sprintf("ping %v -c %d %s --json", serverAddr, count, how), &r)
}

// file sends a file over the link. It returns the sender's report, how many bytes the link passed,
// and how many packets it dropped.
func (l *pair) file(words string) (sent control.Transfer, passed, dropped uint64, err error) {
	from, to := filepath.Join(l.dir, "sent"), filepath.Join(l.dir, "received")
	if err := os.WriteFile(from, make([]byte, fileBytes), 0o600); err != nil {
		return sent, 0, 0, err
	}
	before, err := l.impair(words)
	if err != nil {
		return sent, 0, 0, err
	}
	if err := l.receiveFile(to); err != nil {
		return sent, 0, 0, err
	}
	send := fmt.Sprintf("sendfile %s %v %d --json", from, serverAddr, filePort)
	if err := l.near.answer(send, &sent); err != nil {
		return sent, 0, 0, err
	}
	line, err := l.far.next()
	if err != nil {
		return sent, 0, 0, err
	}
	var got control.Transfer
	if err := json.Unmarshal(line, &got); err != nil {
		return sent, 0, 0, err
	}
	if got.SHA256 != sent.SHA256 {
		return sent, 0, 0, errors.New("the file did not arrive intact")
	}
	var ways []control.Impairment
	if err := l.near.answer("impair --json", &ways); err != nil {
		return sent, 0, 0, err
	}
	after, err := outLink(ways)
	passed, dropped = after.PassedBytes-before.PassedBytes, after.QueueDropped-before.QueueDropped
	return sent, passed, dropped, err
}

// receiveFile starts recvfile on the far node. An answer to a later command shows that the node is
// listening.
func (l *pair) receiveFile(path string) error {
	if err := l.far.tell(fmt.Sprintf("recvfile %s %d --force --json", path, filePort)); err != nil {
		return err
	}
	for {
		var sockets []control.Socket
		if err := l.far.answer("sockets --json", &sockets); err != nil {
			return err
		}
		for _, s := range sockets {
			if s.Local.Port() == filePort {
				return nil
			}
		}
	}
}
