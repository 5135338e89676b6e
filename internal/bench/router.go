package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/link"
)

// The network: this program is the host on either side of one router process.
var (
	leftAddr    = ip.Addr{10, 0, 0, 1}
	routerLeft  = ip.Addr{10, 0, 0, 2}
	routerRight = ip.Addr{10, 1, 0, 1}
	rightAddr   = ip.Addr{10, 1, 0, 2}
)

const (
	packetBytes = 1400
	// flight is how many packets may be under way: enough to keep the router busy, few enough for
	// the kernel's queues, so that none is lost.
	flight = 1024
	// trainPackets is how many packets go to the kernel in one piece, trainsAtOnce in one call.
	trainPackets = 44
	trainsAtOnce = 4
	// overdue is when packets that did not come out are given up.
	overdue = 100 * time.Millisecond
)

// router sends packets of 1400 bytes through a router process and counts what comes out: a closed
// loop on one link in and one link out, sender and receiver in this one thread.
func router(ctx context.Context, b *bench) (samples []sample, err error) {
	ports, err := link.FreePorts(4)
	if err != nil {
		return nil, err
	}
	left, err := openHost(ports[0], ports[1], leftAddr, routerLeft)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, left.Close()) }()
	right, err := openHost(ports[3], ports[2], rightAddr, routerRight)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, right.Close()) }()
	r, err := startRouter(ctx, b, ports)
	if err != nil {
		return nil, err
	}
	defer r.kill()
	forTime := time.Duration(b.size(int64(4*time.Second), int64(time.Second)))
	run, err := drive(ctx, left, right, forTime)
	if err != nil {
		return nil, err
	}
	return r.sumUp(run)
}

// flow is what went through the router.
type flow struct {
	sent, arrived int
	took          time.Duration
}

// drive keeps packets flowing from one host to the other.
func drive(ctx context.Context, left, right *link.UDP, forTime time.Duration) (flow, error) {
	batch, frames := packets(), make([]buffer.Frame, 256)
	var f flow
	underWay := 0
	began := time.Now()
	last := began // when something came out
	for {
		now := time.Now()
		over := now.Sub(began) > forTime
		switch {
		case ctx.Err() != nil:
			return f, ctx.Err()
		case now.Sub(last) > overdue:
			if f.arrived == 0 {
				return f, errors.New("nothing comes out of the router")
			}
			if over {
				return f, nil // what was under way has come out, or never will
			}
			underWay, last = 0, now
		}
		if !over {
			f.took = now.Sub(began)
		}
		if room := (flight - underWay) / trainPackets; room > 0 && !over {
			n, err := left.WriteBatch(batch[:min(room, trainsAtOnce)])
			if err != nil {
				return f, err
			}
			f.sent += n * trainPackets
			underWay += n * trainPackets
		}
		out, err := receive(right, frames)
		if err != nil {
			return f, err
		}
		if out > 0 {
			f.arrived += out
			underWay = max(0, underWay-out)
			last = now
		}
	}
}

// receive counts the packets that have arrived.
func receive(right *link.UDP, frames []buffer.Frame) (int, error) {
	n, err := right.ReadBatch(frames)
	if errors.Is(err, link.ErrWouldBlock) {
		return 0, nil
	}
	count := 0
	for _, f := range frames[:n] {
		count += (len(f.Data) + f.Size - 1) / f.Size
	}
	return count, err
}

// packets are a few trains of one test packet.
func packets() []buffer.Train {
	packet := make([]byte, packetBytes)
	ip.Header{
		TotalLen: packetBytes, TTL: 16, Protocol: ip.ProtoTest, Src: leftAddr, Dst: rightAddr,
	}.Put(packet)
	pieces := make([][]byte, trainPackets)
	for i := range pieces {
		pieces[i] = packet
	}
	trains := make([]buffer.Train, trainsAtOnce)
	for i := range trains {
		trains[i] = buffer.Train{
			Pieces: pieces, Size: packetBytes, Count: trainPackets,
			Bytes: trainPackets * packetBytes, NextHop: routerLeft,
		}
	}
	return trains
}

// openHost opens this program's end of a link.
func openHost(port, peerPort int, local, peer ip.Addr) (*link.UDP, error) {
	return link.Open(link.Config{
		Host: "127.0.0.1", Port: uint16(port),
		Interfaces: []link.Interface{{
			Name: "if0", Local: local,
			Neighbors: []link.Neighbor{{Addr: peer, Host: "127.0.0.1", Port: uint16(peerPort)}},
		}},
	})
}

// routerProcess is the router under test.
type routerProcess struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	ended   bool
}

const routerFile = `# the router that internal/bench drives
interface if0 10.0.0.2/24 127.0.0.1:%d
interface if1 10.1.0.1/24 127.0.0.1:%d
neighbor 10.0.0.1 at 127.0.0.1:%d via if0
neighbor 10.1.0.2 at 127.0.0.1:%d via if1
routing rip
`

func startRouter(ctx context.Context, b *bench, ports []int) (*routerProcess, error) {
	path := filepath.Join(b.dir, "router.lnx")
	text := fmt.Sprintf(routerFile, ports[1], ports[2], ports[0], ports[3])
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return nil, err
	}
	r := &routerProcess{process: exec.CommandContext(ctx, b.program, "run", path)}
	r.process.Stderr = b.status
	in, err := r.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := r.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.in, r.out = in, bufio.NewScanner(out)
	r.out.Buffer(nil, 1<<20)
	if err := r.process.Start(); err != nil {
		return nil, err
	}
	if _, err := r.interfaces(); err != nil { // it is up when it answers
		r.kill()
		return nil, fmt.Errorf("the router does not start: %w", err)
	}
	return r, nil
}

// interfaces asks the router for its counters. The packets that come are for others, so nothing but
// answers is printed.
func (r *routerProcess) interfaces() (list []control.Interface, err error) {
	if _, err := io.WriteString(r.in, "interfaces --json\n"); err != nil {
		return nil, err
	}
	if !r.out.Scan() {
		return nil, errors.Join(io.ErrUnexpectedEOF, r.out.Err())
	}
	return list, json.Unmarshal(r.out.Bytes(), &list)
}

// sumUp asks the router what it counted, ends it, and sets that beside what came out.
func (r *routerProcess) sumUp(f flow) ([]sample, error) {
	list, err := r.interfaces()
	if err != nil {
		return nil, err
	}
	if len(list) != 2 {
		return nil, fmt.Errorf("the router has %d interfaces", len(list))
	}
	if err := errors.Join(r.in.Close(), r.process.Wait()); err != nil {
		return nil, fmt.Errorf("the router: %w", err)
	}
	r.ended = true
	forwarded := float64(list[1].Out.Packets)
	user := r.process.ProcessState.UserTime()
	busy := user + r.process.ProcessState.SystemTime()
	return []sample{{
		value: forwarded / f.took.Seconds(), unit: "packets/s", floor: 300_000,
		note: fmt.Sprintf("1400 B each, counted at the router; %d of %d did not come out%s; "+
			"%.3f µs of its CPU a packet, %.3f of them not the kernel's",
			f.sent-f.arrived, f.sent, drops(list),
			float64(busy.Microseconds())/max(forwarded, 1),
			float64(user.Microseconds())/max(forwarded, 1)),
	}}, nil
}

// drops lists what the router dropped and why.
func drops(list []control.Interface) string {
	var text strings.Builder
	for _, i := range list {
		for _, d := range slices.Concat(i.In.Drops, i.Out.Drops) {
			fmt.Fprintf(&text, ", %s: %s %d", i.Name, d.Reason, d.Packets)
		}
	}
	return text.String()
}

func (r *routerProcess) kill() {
	if r.ended {
		return
	}
	_ = r.process.Process.Kill() // it may have ended by itself
	_ = r.process.Wait()
	r.ended = true
}
