package node

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/rdt"
)

// checksums are RDT's, by name.
var checksums = map[string]rdt.Checksum{
	"": rdt.MD5, rdt.MD5.String(): rdt.MD5, rdt.CRC32C.String(): rdt.CRC32C,
}

// RDTChecksum finds a checksum by its name: md5, which the empty name means too, or crc32c.
func RDTChecksum(name string) (rdt.Checksum, error) {
	sum, ok := checksums[name]
	if !ok {
		return 0, fmt.Errorf("%w: checksum %q: want md5 or crc32c", rdt.ErrConfig, name)
	}
	return sum, nil
}

func rdtConfig(o *control.RDTOptions) (cfg RDTConfig, err error) {
	cfg = RDTConfig{
		Window: o.Window, Payload: o.Payload, Timeout: o.Timeout, Selective: !o.Cumulative,
		Compress: o.Compress, Interleave: o.Interleave, Patience: o.Patience,
	}
	cfg.Checksum, err = RDTChecksum(o.Checksum)
	return cfg, netError(err)
}

// rdtRequests carries out the requests about RDT.
func (n *Node) rdtRequests(ctx context.Context, req any) (any, error) {
	switch r := req.(type) {
	case control.RDTServe:
		return n.serveFiles(ctx, &r)
	case control.RDTClose:
		return control.Nothing{}, n.closeRDT(r)
	case control.RDTList:
		return n.listRDT(ctx, &r)
	case control.RDTFetch:
		return n.fetchRDT(ctx, &r)
	}
	list := []control.RDTFlow{}
	err := n.call(func(now clock.Time) {
		for _, port := range n.stack.Ports() {
			switch e := port.UDP.Owner.(type) {
			case *RDTServer:
				list = append(list, e.describe(now)...)
			case *rdtFlow:
				list = append(list, e.describe())
			}
		}
	})
	return list, controlError(err)
}

// describe is what operators see of a server: it, and its flows. The loop's.
func (s *RDTServer) describe(now clock.Time) []control.RDTFlow {
	i := s.server.Info()
	list := []control.RDTFlow{{
		Local: s.addr, Remote: netip.AddrPortFrom(netip.IPv4Unspecified(), 0), State: "serving",
		Objects: i.Objects, Bytes: i.Bytes,
	}}
	for _, f := range s.server.Flows(now) {
		state := "sending"
		if f.Done {
			state = "done"
		}
		list = append(list, control.RDTFlow{
			Local: s.addr, Remote: f.Peer, State: state, Objects: f.Objects, Bytes: f.Bytes,
			Sent: f.Sender.Sent, Again: f.Sender.Resent,
			Received: f.Sender.Acks + f.Sender.Requests,
			InFlight: f.Sender.InFlight, SRTT: f.Sender.SRTT,
		})
	}
	return list
}

// describe is what operators see of a flow to this node. The loop's.
func (f *rdtFlow) describe() control.RDTFlow {
	i := f.receiver.Info()
	state := "receiving"
	if f.receiver.Done() {
		state = "done"
	}
	return control.RDTFlow{
		Local: f.local, Remote: f.port.UDP.Remote(), State: state, Objects: i.Complete,
		Bytes: int64(i.Bytes), Sent: i.Acks + i.Requests, Received: i.Received,
	}
}

// closeRDT ends what RDT has on a port.
func (n *Node) closeRDT(r control.RDTClose) error {
	found := false
	err := n.call(func(clock.Time) {
		for _, port := range n.stack.Ports() {
			if port.UDP.Local().Port() != r.Port {
				continue
			}
			switch e := port.UDP.Owner.(type) {
			case *RDTServer:
				found = e.shut()
			case *rdtFlow:
				found = e.shut(control.ErrClosed)
			}
			return
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("RDT on port %d: %w", r.Port, control.ErrNoSuchSocket)
	}
	return controlError(err)
}

// serveFiles opens a server of files, and announces what is taken.
func (n *Node) serveFiles(ctx context.Context, r *control.RDTServe) (control.RDTServed, error) {
	var answer control.RDTServed
	cfg, err := rdtConfig(&r.Options)
	if err != nil {
		return answer, err
	}
	objects, err := readObjects(ctx, r.Paths)
	if err != nil {
		return answer, fmt.Errorf("rdt serve: %w", err)
	}
	s, err := n.ServeRDT(netip.AddrPortFrom(netip.IPv4Unspecified(), r.Port), cfg, objects,
		func(f RDTServed) { n.announceServed(r.Port, &f) })
	if err != nil {
		return answer, fmt.Errorf("port %d: %w", r.Port, control.Reason(err))
	}
	answer.Local, answer.Objects = s.addr, len(objects)
	for i := range objects {
		answer.Bytes += objects[i].Size
	}
	return answer, nil
}

// announceServed tells the operator of a flow that has ended, unless it was a look at the
// listing.
func (n *Node) announceServed(port uint16, f *RDTServed) {
	if f.Objects == 0 && f.Err == nil {
		return
	}
	what := fmt.Sprintf("%d objects, %d bytes in %.3f s", f.Objects, f.Bytes, f.Took.Seconds())
	if f.Err != nil {
		what = fmt.Sprintf("gave up after %.3f s: the client is silent: %d objects asked for",
			f.Took.Seconds(), f.Objects)
	}
	i := &f.Sender
	n.say("rdt %d: %s: %s: %d packets, %d of them again (ACKs told of %d, %d timed out)",
		port, f.Peer, what, i.Sent, i.Resent, i.FastResent, i.TimedOut)
}

// listRDT lists what a server has.
func (n *Node) listRDT(ctx context.Context, r *control.RDTList) ([]control.RDTEntry, error) {
	cfg, err := rdtConfig(&r.Options)
	if err != nil {
		return nil, err
	}
	to := netip.AddrPortFrom(r.Addr, r.Port)
	found, err := n.ListRDT(ctx, to, RDTFetch{Config: cfg})
	if err != nil {
		return nil, fmt.Errorf("%v: %w", to, control.Reason(err))
	}
	list := make([]control.RDTEntry, 0, len(found))
	for i := range found {
		list = append(list, entryOf(&found[i]))
	}
	return list, nil
}

func entryOf(e *RDTEntry) control.RDTEntry {
	return control.RDTEntry{Name: e.Name, Bytes: e.Size, SHA256: hex.EncodeToString(e.SHA256[:])}
}

// wholeObjects says how many of the objects had come to their end.
func wholeObjects(got *RDTFetched) string {
	n := 0
	for i := range got.Objects {
		if o := &got.Objects[i]; o.Err == nil && o.Done > 0 {
			n++
		}
	}
	return fmt.Sprintf("%d of %d objects are whole", n, len(got.Objects))
}

// fetchRDT fetches objects, and stores them if it is to.
func (n *Node) fetchRDT(ctx context.Context, r *control.RDTFetch) (control.RDTFetched, error) {
	var answer control.RDTFetched
	cfg, err := rdtConfig(&r.Options)
	if err != nil {
		return answer, err
	}
	what := RDTFetch{Config: cfg, Names: r.Names}
	problems := map[string]error{} // of storing, by name
	if r.Dir != "" {
		folder, err := openShelf(r.Dir)
		if err != nil {
			return answer, fmt.Errorf("rdt fetch: %w", err)
		}
		defer folder.close()
		what.Each = func(o *RDTResult) error {
			if o.Err == nil {
				err := storeObject(folder.Root, o.Name, o.Data)
				if problems[o.Name] = err; err == nil {
					answer.Made = folder.made
				}
			}
			return nil
		}
	}
	began := n.now()
	var last control.Progress
	what.Progress = func(bytes, total int64) {
		last = control.Progress{Bytes: bytes, Total: total, Elapsed: n.now().Sub(began)}
		if r.Progress != nil {
			r.Progress(last)
		}
	}
	to := netip.AddrPortFrom(r.Addr, r.Port)
	got, err := n.FetchRDT(ctx, to, what)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return answer, fmt.Errorf("%v: %w (%d of %d bytes had come, and %s)", to,
			control.ErrStopped, last.Bytes, last.Total, wholeObjects(&got))
	}
	if err != nil {
		return answer, fmt.Errorf("%v: %w", to, control.Reason(err))
	}
	answer = control.RDTFetched{
		Seconds: got.Took.Seconds(), Received: got.Received, Twice: got.Twice, Damaged: got.Damaged,
		Acks: got.Acks, Requests: got.Requests, Made: answer.Made,
	}
	for i := range got.Objects {
		o := objectOf(&got.Objects[i], r.Dir, problems)
		if o.Problem == "" {
			answer.Bytes += o.Bytes
		}
		answer.Objects = append(answer.Objects, o)
	}
	return answer, nil
}
