package services

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// RDTConfig converts the options of a request to those of package rdt.
func RDTConfig(o *control.RDTOptions) (cfg rdt.Config, err error) {
	cfg = rdt.Config{
		Window: o.Window, Payload: o.Payload, Timeout: o.Timeout, Selective: !o.Cumulative,
		Compress: o.Compress, Interleave: o.Interleave, Patience: o.Patience,
	}
	cfg.Checksum, err = parseChecksum(o.Checksum)
	return cfg, err
}

// serveRDT opens a server of files and reports finished flows.
func (h *Host) serveRDT(ctx context.Context, r control.RDTServe) (control.RDTServed, error) {
	var answer control.RDTServed
	cfg, err := RDTConfig(&r.Options)
	if err != nil {
		return answer, err
	}
	objects, err := readObjects(ctx, r.Paths)
	if err != nil {
		return answer, fmt.Errorf("rdt serve: %w", err)
	}
	s, err := ServeRDT(h.node, h.node.AllAddrs(r.Port), cfg, objects,
		func(f rdt.Flow) { h.announce(r.Port, &f) })
	if err != nil {
		return answer, fmt.Errorf("port %d: %w", r.Port, control.Reason(err))
	}
	answer.Local, answer.Objects = s.Local(), len(objects)
	for i := range objects {
		answer.Bytes += objects[i].Size
	}
	return answer, nil
}

// announce reports a finished flow to the operator, unless it only fetched the listing.
func (h *Host) announce(port uint16, f *rdt.Flow) {
	if f.Objects == 0 && f.Err == nil {
		return
	}
	what := fmt.Sprintf("%d objects, %d bytes in %.3f s", f.Objects, f.Bytes, f.Took.Seconds())
	if f.Err != nil {
		what = fmt.Sprintf("gave up after %.3f s: no answer from the client of %d objects",
			f.Took.Seconds(), f.Objects)
	}
	i := &f.Sender
	h.node.Watchers.Printf(
		"rdt %d: %s: %s: %d packets, %d of them retransmitted (%d after ACKs, %d after timeouts)",
		port, f.Peer, what, i.Sent, i.Resent, i.FastResent, i.TimedOut,
	)
}

func (h *Host) listRDT(ctx context.Context, r control.RDTList) ([]control.RDTEntry, error) {
	cfg, err := RDTConfig(&r.Options)
	if err != nil {
		return nil, err
	}
	to := netip.AddrPortFrom(r.Addr, r.Port)
	found, err := ListRDT(ctx, h.node, to, RDTFetch{Config: cfg})
	if err != nil {
		return nil, fmt.Errorf("%v: %w", to, control.Reason(err))
	}
	list := make([]control.RDTEntry, 0, len(found))
	for i := range found {
		list = append(list, entryOf(&found[i]))
	}
	return list, nil
}

func entryOf(e *rdt.Entry) control.RDTEntry {
	return control.RDTEntry{Name: e.Name, Bytes: e.Size, SHA256: hex.EncodeToString(e.SHA256[:])}
}

// whole describes how many objects are complete.
func whole(got *RDTFetched) string {
	n := 0
	for i := range got.Objects {
		if o := &got.Objects[i]; o.Err == nil && o.Done > 0 {
			n++
		}
	}
	return fmt.Sprintf("%d of %d objects are complete", n, len(got.Objects))
}

// fetchRDT fetches objects, and stores them if Dir is set.
func (h *Host) fetchRDT(ctx context.Context, r control.RDTFetch) (control.RDTFetched, error) {
	var answer control.RDTFetched
	cfg, err := RDTConfig(&r.Options)
	if err != nil {
		return answer, err
	}
	what := RDTFetch{Config: cfg, Names: r.Names}
	problems := map[string]error{} // errors of storing objects, by name
	if r.Dir != "" {
		folder, err := openObjectStore(files.Of(ctx), r.Dir)
		if err != nil {
			return answer, fmt.Errorf("rdt fetch: %w", err)
		}
		defer folder.close()
		what.Each = func(o *RDTResult) error {
			if o.Err == nil {
				err := store(folder.Folder, o.Name, o.Data, r.Overwrite)
				if problems[o.Name] = err; err == nil {
					answer.Made = folder.made
				}
			}
			return nil
		}
	}
	began := h.node.Time.Now()
	var last control.Progress
	what.Progress = func(bytes, total int64) {
		last = control.Progress{Bytes: bytes, Total: total, Elapsed: h.node.Time.Now().Sub(began)}
		if r.Progress != nil {
			r.Progress(last)
		}
	}
	to := netip.AddrPortFrom(r.Addr, r.Port)
	got, err := FetchRDT(ctx, h.node, to, what)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return answer, fmt.Errorf("%v: %w (%d of %d bytes arrived, and %s)", to,
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

func (h *Host) flowsRDT(_ context.Context, _ control.RDTFlows) ([]control.RDTFlow, error) {
	list := []control.RDTFlow{}
	err := h.node.Ask(func(s *stack.Stack, now clock.Time) error {
		for _, port := range s.Ports().List() {
			switch e := port.UDP.Owner.(type) {
			case *RDTServer:
				list = append(list, e.describe(now)...)
			case *flow:
				list = append(list, e.describe())
			}
		}
		return nil
	})
	return list, err
}

func (h *Host) closeRDT(_ context.Context, r control.RDTClose) error {
	return h.node.Ask(func(s *stack.Stack, _ clock.Time) error {
		for _, port := range s.Ports().List() {
			if port.UDP.Local().Port() != r.Port {
				continue
			}
			found := false
			switch e := port.UDP.Owner.(type) {
			case *RDTServer:
				found = e.shut()
			case *flow:
				found = e.shut(control.ErrClosed)
			}
			if found {
				return nil
			}
			break
		}
		return fmt.Errorf("RDT on port %d: %w", r.Port, control.ErrNoSuchSocket)
	})
}
