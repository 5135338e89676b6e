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

// Bounds of what a server may have a client keep.
const (
	// MaxBytes is how much the objects of one fetch may have, or the files of one server.
	MaxBytes = 1 << 30
	// listingWindow is as wide as the window of a listing may be to be used whole: what the
	// server's is a client learns from the listing.
	listingWindow = 8192
)

// errDigest is an object that is not what the server's listing says.
var errDigest = fmt.Errorf("%w: its SHA-256 is not the one in the listing", rdt.ErrMalformed)

// RDTFetch is what to take from a server, and who wants it.
type RDTFetch struct {
	From   netip.AddrPort // as far as they are given, the address and port to ask from
	Config rdt.Config     // of it Checksum, InOrder and Patience
	Names  []string       // in the order in which they are to leave; empty: all
	// Known is the server's listing, if it need not be asked for; nil: it need.
	Known *rdt.Listing
	// Each is called with every object as it ends, in the order in which they do. Its error ends
	// the fetch. Nil: nobody wants them.
	Each func(*RDTResult) error
	// Progress, if set, is called when the listing is there, and now and then.
	Progress func(bytes, total int64)
}

// RDTResult is what became of one object. Times count from the first request.
type RDTResult struct {
	rdt.Entry
	Data        []byte        // of Each alone; nil if there is an Err
	Began, Done time.Duration // the first and the last of it arrived; 0: nothing has
	Err         error         // rdt.ErrMalformed, rdt.ErrTooLarge, rdt.ErrSilent or another
}

// RDTFetched is what came of a fetch.
type RDTFetched struct {
	Objects []RDTResult // in the order asked for
	Took    time.Duration
	// Received packets brought something new; Acks and Requests were sent. Twice came what was
	// there, and Damaged had a wrong checksum.
	Received, Twice, Damaged, Acks, Requests uint64
}

// fetching is a fetch under way.
type fetching struct {
	node  *node.Node
	to    netip.AddrPort
	began time.Time
	RDTFetch
	result RDTFetched
	got    int64 // bytes of objects that are whole
	total  int64
}

// FetchRDT takes objects from a server: first the listing, then what is wanted of it, up to
// rdt.MaxObjects in one flow. An error means that there is no listing, that a name is not in
// it (rdt.ErrAbsent), that Each had one, or that ctx has ended. What became of each object
// else is in the result, an object that did not come with its error.
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

// over is the end of a fetch.
func (f *fetching) over(err error) (RDTFetched, error) {
	f.result.Took = f.node.Time.Now().Sub(f.began)
	return f.result, f.opError(err)
}

// ListRDT asks a server what it has. Of what, From and Config count.
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

// list fetches the listing.
func (f *fetching) list(ctx context.Context) (list rdt.Listing, err error) {
	if ctx.Err() != nil {
		return list, context.Cause(ctx) // before anybody hears of us
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
		err = fmt.Errorf("%w: nothing has come for %v", err, f.Config.Patience)
	}
	return list, cmp.Or(end, err)
}

// fetch fetches what is wanted of a listing.
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
		return fmt.Errorf("%w: %d bytes, and a fetch may have %d", rdt.ErrTooLarge, f.total,
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

// choose finds the numbers of what is wanted.
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
			return nil, fmt.Errorf("%w: %q is wanted twice", rdt.ErrObject, name)
		}
		streams = append(streams, id)
	}
	if len(absent) > 0 {
		return nil, fmt.Errorf("%w: %s", rdt.ErrAbsent, strings.Join(absent, ", "))
	}
	return streams, nil
}

// complete takes an object that has ended.
func (f *fetching) complete(r *RDTResult, c *rdt.Completion) error {
	r.Err = node.NetError(c.Err)
	if c.Began != clock.Never {
		r.Began = f.node.Time.Wall(c.Began).Sub(f.began)
		r.Done = f.node.Time.Wall(c.At).Sub(f.began)
	}
	if r.Err == nil && (int64(len(c.Data)) != r.Size || sha256.Sum256(c.Data) != r.SHA256) {
		r.Err = errDigest
	}
	told := *r
	if r.Err == nil {
		f.got += r.Size
		told.Data = c.Data
	}
	if f.Each == nil {
		return nil
	}
	return f.Each(&told)
}

// tell says how far it is, with so many bytes of objects that are not whole.
func (f *fetching) tell(held int64) {
	if f.Progress != nil {
		f.Progress(min(f.total, f.got+held), f.total)
	}
}

// flow receives objects by number, until each has ended.
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

// count adds up what a flow has counted.
func (f *fetching) count(flow *flow) {
	var i rdt.ReceiverInfo
	_ = f.node.Call(func(*stack.Stack, clock.Time) error { // a closed node has counted nothing
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
