// Package objects serves and fetches files by RDT, as operators ask for it: package node has the
// ends of the protocol, this one what is read from folders and stored in them.
package objects

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/node"
)

// Host does it for a node.
type Host struct{ node *node.Node }

// New returns what does it for a node.
func New(n *node.Node) *Host { return &Host{n} }

// Do carries out the requests about files by RDT.
func (h *Host) Do(ctx context.Context, req any) (any, error) {
	switch r := req.(type) {
	case control.RDTServe:
		return h.serve(ctx, &r)
	case control.RDTList:
		return h.list(ctx, &r)
	case control.RDTFetch:
		return h.fetch(ctx, &r)
	}
	return nil, fmt.Errorf("request %T: %w", req, control.ErrUnsupported)
}

func config(o *control.RDTOptions) (cfg node.RDTConfig, err error) {
	cfg = node.RDTConfig{
		Window: o.Window, Payload: o.Payload, Timeout: o.Timeout, Selective: !o.Cumulative,
		Compress: o.Compress, Interleave: o.Interleave, Patience: o.Patience,
	}
	cfg.Checksum, err = node.RDTChecksum(o.Checksum)
	return cfg, err
}

// serve opens a server of files, and announces what is taken.
func (h *Host) serve(ctx context.Context, r *control.RDTServe) (control.RDTServed, error) {
	var answer control.RDTServed
	cfg, err := config(&r.Options)
	if err != nil {
		return answer, err
	}
	objects, err := readObjects(ctx, r.Paths)
	if err != nil {
		return answer, fmt.Errorf("rdt serve: %w", err)
	}
	s, err := h.node.ServeRDT(netip.AddrPortFrom(netip.IPv4Unspecified(), r.Port), cfg, objects,
		func(f node.RDTServed) { h.announce(r.Port, &f) })
	if err != nil {
		return answer, fmt.Errorf("port %d: %w", r.Port, control.Reason(err))
	}
	answer.Local, answer.Objects = s.Local(), len(objects)
	for i := range objects {
		answer.Bytes += objects[i].Size
	}
	return answer, nil
}

// announce tells the operator of a flow that has ended, unless it was a look at the
// listing.
func (h *Host) announce(port uint16, f *node.RDTServed) {
	if f.Objects == 0 && f.Err == nil {
		return
	}
	what := fmt.Sprintf("%d objects, %d bytes in %.3f s", f.Objects, f.Bytes, f.Took.Seconds())
	if f.Err != nil {
		what = fmt.Sprintf("gave up after %.3f s: the client is silent: %d objects asked for",
			f.Took.Seconds(), f.Objects)
	}
	i := &f.Sender
	h.node.Announce(control.Message{Text: fmt.Sprintf(
		"rdt %d: %s: %s: %d packets, %d of them again (ACKs told of %d, %d timed out)",
		port, f.Peer, what, i.Sent, i.Resent, i.FastResent, i.TimedOut,
	)})
}

// list lists what a server has.
func (h *Host) list(ctx context.Context, r *control.RDTList) ([]control.RDTEntry, error) {
	cfg, err := config(&r.Options)
	if err != nil {
		return nil, err
	}
	to := netip.AddrPortFrom(r.Addr, r.Port)
	found, err := h.node.ListRDT(ctx, to, node.RDTFetch{Config: cfg})
	if err != nil {
		return nil, fmt.Errorf("%v: %w", to, control.Reason(err))
	}
	list := make([]control.RDTEntry, 0, len(found))
	for i := range found {
		list = append(list, entryOf(&found[i]))
	}
	return list, nil
}

func entryOf(e *node.RDTEntry) control.RDTEntry {
	return control.RDTEntry{Name: e.Name, Bytes: e.Size, SHA256: hex.EncodeToString(e.SHA256[:])}
}

// whole says how many of the objects had come to their end.
func whole(got *node.RDTFetched) string {
	n := 0
	for i := range got.Objects {
		if o := &got.Objects[i]; o.Err == nil && o.Done > 0 {
			n++
		}
	}
	return fmt.Sprintf("%d of %d objects are whole", n, len(got.Objects))
}

// fetch fetches objects, and stores them if it is to.
func (h *Host) fetch(ctx context.Context, r *control.RDTFetch) (control.RDTFetched, error) {
	var answer control.RDTFetched
	cfg, err := config(&r.Options)
	if err != nil {
		return answer, err
	}
	what := node.RDTFetch{Config: cfg, Names: r.Names}
	problems := map[string]error{} // of storing, by name
	if r.Dir != "" {
		folder, err := openShelf(files.Of(ctx), r.Dir)
		if err != nil {
			return answer, fmt.Errorf("rdt fetch: %w", err)
		}
		defer folder.close()
		what.Each = func(o *node.RDTResult) error {
			if o.Err == nil {
				err := store(folder.Folder, o.Name, o.Data, r.Overwrite)
				if problems[o.Name] = err; err == nil {
					answer.Made = folder.made
				}
			}
			return nil
		}
	}
	began := h.node.Now()
	var last control.Progress
	what.Progress = func(bytes, total int64) {
		last = control.Progress{Bytes: bytes, Total: total, Elapsed: h.node.Now().Sub(began)}
		if r.Progress != nil {
			r.Progress(last)
		}
	}
	to := netip.AddrPortFrom(r.Addr, r.Port)
	got, err := h.node.FetchRDT(ctx, to, what)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return answer, fmt.Errorf("%v: %w (%d of %d bytes had come, and %s)", to,
			control.ErrStopped, last.Bytes, last.Total, whole(&got))
	}
	if err != nil {
		return answer, fmt.Errorf("%v: %w", to, control.Reason(err))
	}
	answer = control.RDTFetched{
		Seconds: got.Took.Seconds(), Received: got.Received, Twice: got.Twice, Damaged: got.Damaged,
		Acks: got.Acks, Requests: got.Requests, Made: answer.Made,
	}
	for i := range got.Objects {
		o := resultOf(&got.Objects[i], r.Dir, problems)
		if o.Problem == "" {
			answer.Bytes += o.Bytes
		}
		answer.Objects = append(answer.Objects, o)
	}
	return answer, nil
}
