package examine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// transferTime is how long a file may take by default.
const transferTime = 30 * time.Second

// content returns the bytes of a file. They do not repeat, so that a wrong offset is detected.
func content(n int) []byte {
	random := rand.NewPCG(uint64(n), 1)
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint64() >> 32)
	}
	return b
}

// transfer is a file transfer between the subject and a stack of ours behind an impaired link.
type transfer struct {
	x        *execution
	peer     *user
	to, from *netem.Link // links to the subject, and from it
	sender   bool        // the subject sends the file
	file     []byte
	equal    int // bytes that have arrived and match
}

// transfer sends a file to the subject or makes the subject send one.
func (x *execution) transfer(s *step) error {
	x.sent = content(int(s.count.value(x.symbol)))
	t := &transfer{x: x, sender: s.words[0] == "from", file: x.sent}
	l := x.setup.Links[0]
	cfg := stack.Config{
		Interfaces: []stack.Interface{{
			Name: "peer", Addr: netip.PrefixFrom(l.Peer, 24),
		}},
		TCP: tcp.Config{Knobs: tcp.Knobs{
			OptionsOff: !slices.Contains(s.words, "options"),
			Recovery: tcp.Recovery{
				RTOMin: 50 * time.Millisecond, RTOInitial: 200 * time.Millisecond,
				RTOMax: time.Second,
			},
		}},
	}
	cfg.Knobs.ICMP.NoErrors = true
	var err error
	if t.peer, err = newUser(x.run.Now(), cfg); err != nil {
		return &stop{Void, err.Error()}
	}
	text := fmt.Sprintf("loss %g%% reorder %g%% duplicate %g%% delay 1ms",
		s.lossy.loss*100, s.lossy.reorder*100, s.lossy.duplicate*100)
	for i, link := range []**netem.Link{&t.to, &t.from} {
		c, err := netem.Parse(text)
		if err == nil {
			c.Origin = x.run.Now()
			*link, err = netem.New(c, netem.Streams(uint64(i+1)))
		}
		if err != nil {
			return &stop{Void, err.Error()}
		}
	}
	if err := t.open(); err != nil {
		return err
	}
	return t.carry()
}

// open starts the transfer at both ends.
func (t *transfer) open() error {
	x, l := t.x, t.x.setup.Links[0]
	receive := &step{
		verb: "recvfile", source: "recvfile",
		command: Command{Kind: CommandReceiveFile},
	}
	if t.sender {
		err := t.peer.do(x.run.Now(), Command{Kind: CommandReceiveFile, Port: peerPort})
		if err != nil {
			return &stop{Void, err.Error()}
		}
		return x.command(&step{
			verb: "sendfile", source: fmt.Sprintf("sendfile %d", len(t.file)),
			command: Command{Kind: CommandSendFile, Data: t.file},
		})
	}
	if err := x.command(receive); err != nil {
		return err
	}
	if err := x.wait(&step{span: span{1, "rtt"}}); err != nil {
		return err
	}
	err := t.peer.do(x.run.Now(), Command{
		Kind: CommandSendFile, Addr: l.Addr.Addr(),
		Port: servicePort, Data: t.file,
	})
	if err != nil {
		return &stop{Void, err.Error()}
	}
	return nil
}

// carry moves packets until the file has arrived.
func (t *transfer) carry() error {
	x := t.x
	limit := x.check.Limit
	if limit == 0 {
		limit = transferTime
	}
	until := x.run.Now().Add(limit)
	for x.run.Now() < until {
		if err := t.forward(); err != nil {
			return err
		}
		const look = 20 * time.Millisecond
		next := clock.Earliest(until, x.run.Now().Add(look), t.peer.stack.Deadline(),
			t.to.Deadline(), t.from.Deadline())
		p, err := x.receive(next)
		if err != nil {
			return err
		}
		if p != nil && p.tcp != nil {
			t.from.Input(x.run.Now(), 0, [][]byte{p.raw})
		}
		if done, err := t.done(); done || err != nil {
			return err
		}
	}
	got := t.arrived()
	return failed("%d of %d bytes arrived within %s", len(got), len(t.file), limit)
}

func (t *transfer) arrived() []byte {
	if t.sender {
		return t.peer.file
	}
	b, _ := t.x.run.File()
	return b
}

// done reports whether the file has arrived at the other end, and compares its bytes.
func (t *transfer) done() (bool, error) {
	done := t.peer.done
	if !t.sender {
		_, done = t.x.run.File()
	}
	got := t.arrived()
	n := min(len(got), len(t.file))
	if n < t.equal { // the subject has started the file again
		t.equal = 0
	}
	same := bytes.Equal(got[t.equal:n], t.file[t.equal:n])
	if same {
		t.equal = n
	}
	if done && same && len(got) == len(t.file) {
		return true, nil
	}
	if !same || done && t.sender {
		at := t.equal
		for at < n && got[at] == t.file[at] {
			at++
		}
		return false, failed("the received file has %d bytes, the sent file %d; they differ from "+
			"offset %d on", len(got), len(t.file), at)
	}
	if c := t.peer.conn; c != nil && c.Err() != nil {
		return false, failed("the connection ended after %d of %d bytes: %v", len(got), len(t.file),
			c.Err())
	}
	return false, nil
}

// forward moves the packets that are due at the peer and on the links.
func (t *transfer) forward() error {
	x, now := t.x, t.x.run.Now()
	t.from.Advance(now)
	for {
		data, _, ok := t.from.Output(now)
		if !ok {
			break
		}
		t.peer.input(now, 0, data)
	}
	t.peer.advance(now)
	for _, a := range t.peer.out {
		t.to.Input(now, 0, [][]byte{a.Data})
	}
	t.peer.out = t.peer.out[:0]
	t.to.Advance(now)
	for {
		data, _, ok := t.to.Output(now)
		if !ok {
			return nil
		}
		p := decode(now, 0, slices.Clone(data))
		p.sent = true
		if p.tcp != nil && p.tcp.flags&flagSYN != 0 {
			x.conn.iss = p.tcp.seq
			x.conn.us = netip.AddrPortFrom(p.ip.Src, p.tcp.sport)
		}
		if err := x.transmit(p); err != nil {
			return err
		}
	}
}
