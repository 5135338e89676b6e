package services

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// These limit what a client keeps in memory.
const (
	// MaxBytes is the maximum total size of the objects of a fetch, or of a server's files.
	MaxBytes = 1 << 30
	// listingWindow is the window for fetching the listing. The listing then contains the server's
	// own window.
	listingWindow = 8192
)

// errDigest means that the contents of an object differ from the server's listing.
var errDigest = fmt.Errorf("%w: its SHA-256 differs from the listing", rdt.ErrMalformed)

// RDTFetch describes a fetch.
type RDTFetch struct {
	From   netip.AddrPort // local address and port; the node chooses unset parts
	Config rdt.Config     // uses Checksum, InOrder and Patience
	Names  []string       // objects in the order to fetch; empty: all
	// Known is the server's listing; nil: request it first.
	Known *rdt.Listing
	// Each is called with every object, in the order of completion. If it returns an error, the
	// fetch stops. If Each is nil, the objects are discarded.
	Each func(*RDTResult) error
	// Progress, if set, is called after the listing, and from time to time.
	Progress func(bytes, total int64)
}

// RDTResult is the result of one object. Times count from the first request.
type RDTResult struct {
	rdt.Entry
	Data        []byte        // content; valid during Each only; nil if Err is set
	Began, Done time.Duration // when the first and the last packet arrived; 0: no packet
	Err         error         // rdt.ErrMalformed, rdt.ErrTooLarge, rdt.ErrSilent, or another error
}

// RDTFetched is the result of a fetch.
type RDTFetched struct {
	Objects []RDTResult // objects in the order of Names
	Took    time.Duration
	// Received counts packets with new data, Twice counts duplicates, and Damaged counts packets
	// with a wrong checksum. Acks and Requests count packets that the client has sent.
	Received, Twice, Damaged, Acks, Requests uint64
}

// fetching is a running fetch.
type fetching struct {
	node  *node.Node
	to    netip.AddrPort
	began time.Time
	RDTFetch
	result RDTFetched
	got    int64 // number of bytes of complete objects
	total  int64
}

// FetchRDT fetches the listing and then the selected objects from a server, up to rdt.MaxObjects in
// one flow. It returns an error if there is no listing, if the listing lacks a name
// (rdt.ErrAbsent), if Each fails, or if ctx ends. Errors of single objects are in the result.
func FetchRDT(
	ctx context.Context, n *node.Node, to netip.AddrPort, what RDTFetch,
) (RDTFetched, error) {
	f := newFetching(n, to, what)
	if what.Known == nil {
		list, err := f.list(ctx)
		if err != nil {
			return f.over(err)
		}
		f.Known = &list
	}
	return f.over(f.fetch(ctx, f.Known))
}

func (f *fetching) over(err error) (RDTFetched, error) {
	f.result.Took = f.node.Time.Now().Sub(f.began)
	return f.result, f.opError(err)
}

// ListRDT fetches a server's listing. It uses From and Config of what.
func ListRDT(
	ctx context.Context, n *node.Node, to netip.AddrPort, what RDTFetch,
) ([]rdt.Entry, error) {
	f := newFetching(n, to, what)
	list, err := f.list(ctx)
	return list.Entries, f.opError(err)
}

func newFetching(n *node.Node, to netip.AddrPort, what RDTFetch) *fetching {
	f := &fetching{node: n, to: to, RDTFetch: what, began: n.Time.Now()}
	f.Config = rdt.Config{
		Checksum: what.Config.Checksum, InOrder: what.Config.InOrder, Timeout: requestPeriod,
		Linger: lingerTime, Patience: cmp.Or(what.Config.Patience, defaultPatience),
	}
	return f
}

func (f *fetching) opError(err error) error {
	if err == nil {
		return nil
	}
	return OpError("fetch", f.to, err)
}

func (f *fetching) list(ctx context.Context) (list rdt.Listing, err error) {
	if ctx.Err() != nil {
		return list, context.Cause(ctx) // no packet has been sent yet
	}
	cfg := f.Config
	cfg.Payload, cfg.Window, cfg.MaxBytes = rdt.MaxPayload, listingWindow, rdt.MaxListing
	end := f.flow(ctx, cfg, []uint16{rdt.ListingStream}, func(c *rdt.Completion) error {
		if err = c.Err; err == nil {
			list, err = rdt.ParseListing(c.Data)
		}
		return nil
	}, nil)
	if errors.Is(err, rdt.ErrSilent) {
		err = fmt.Errorf("%w: no packet for %v", err, f.Config.Patience)
	}
	return list, cmp.Or(end, err)
}

// fetch fetches the selected objects of a listing.
func (f *fetching) fetch(ctx context.Context, list *rdt.Listing) error {
	streams, err := f.choose(list)
	if err != nil {
		return err
	}
	place := make(map[uint16]int, len(streams))
	for i, id := range streams {
		e := list.Entries[id-1]
		place[id] = i
		f.total += e.Size
		f.result.Objects = append(f.result.Objects, RDTResult{Entry: e})
	}
	if f.total > MaxBytes {
		return fmt.Errorf("%w: %d bytes: must be at most %d in one fetch", rdt.ErrTooLarge, f.total,
			int64(MaxBytes))
	}
	f.tell(0)
	cfg := f.Config
	cfg.Payload, cfg.Window = list.Payload, list.Window
	cfg.MaxBytes = int(max(1, f.total))
	for some := range slices.Chunk(streams, rdt.MaxObjects) {
		err := f.flow(ctx, cfg, some, func(c *rdt.Completion) error {
			return f.complete(&f.result.Objects[place[c.Stream]], c)
		}, f.tell)
		if err != nil {
			return err
		}
	}
	f.tell(0)
	return nil
}

// choose returns the stream numbers of the selected objects.
func (f *fetching) choose(list *rdt.Listing) (streams []uint16, err error) {
	if len(f.Names) == 0 {
		for i := range list.Entries {
			streams = append(streams, uint16(i+1))
		}
		return streams, nil
	}
	numbers := make(map[string]uint16, len(list.Entries))
	for i := range list.Entries {
		numbers[list.Entries[i].Name] = uint16(i + 1)
	}
	var absent []string
	for _, name := range f.Names {
		id, ok := numbers[name]
		switch {
		case !ok:
			absent = append(absent, fmt.Sprintf("%q", name))
		case slices.Contains(streams, id):
			return nil, fmt.Errorf("%w: %q is requested twice", rdt.ErrObject, name)
		}
		streams = append(streams, id)
	}
	if len(absent) > 0 {
		return nil, fmt.Errorf("%w: %s", rdt.ErrAbsent, strings.Join(absent, ", "))
	}
	return streams, nil
}

// complete processes a finished object.
func (f *fetching) complete(r *RDTResult, c *rdt.Completion) error {
	r.Err = node.NetError(c.Err)
	if c.Began != clock.Never {
		r.Began = f.node.Time.Wall(c.Began).Sub(f.began)
		r.Done = f.node.Time.Wall(c.At).Sub(f.began)
	}
	if r.Err == nil && (int64(len(c.Data)) != r.Size || sha256.Sum256(c.Data) != r.SHA256) {
		r.Err = errDigest
	}
	report := *r
	if r.Err == nil {
		f.got += r.Size
		report.Data = c.Data
	}
	if f.Each == nil {
		return nil
	}
	return f.Each(&report)
}

// tell reports progress; held counts the bytes of incomplete objects.
func (f *fetching) tell(held int64) {
	if f.Progress != nil {
		f.Progress(min(f.total, f.got+held), f.total)
	}
}

// flow receives objects by number until all are finished.
func (f *fetching) flow(
	ctx context.Context, cfg rdt.Config, wanted []uint16, each func(*rdt.Completion) error,
	progress func(held int64),
) error {
	flow, err := openFlow(f.node, f.From, f.to, cfg, wanted)
	if err != nil {
		return err
	}
	defer flow.leave()
	for left := len(wanted); left > 0; {
		ended, info, err := flow.next(ctx)
		for i := range ended {
			if err := each(&ended[i]); err != nil {
				return err
			}
		}
		left -= len(ended)
		if progress != nil {
			progress(int64(info.Held))
		}
		if left == 0 || err != nil {
			f.count(flow)
		}
		if left > 0 && err != nil {
			return err
		}
	}
	return nil
}

// count adds the counters of a flow to the result.
func (f *fetching) count(flow *flow) {
	var i rdt.ReceiverInfo
	_ = f.node.Call(func(*stack.Stack, clock.Time) error { // a closed node has no counters
		i = flow.receiver.Info()
		return nil
	})
	r := &f.result
	r.Received += i.Received
	r.Twice += i.Drops[rdt.DropRepeated]
	r.Damaged += i.Drops[rdt.DropChecksum]
	r.Acks += i.Acks
	r.Requests += i.Requests
}
