package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rdt"
)

// Bounds of what a server may have a client keep.
const (
	// MaxRDTBytes is how much the objects of one fetch may have, or the files of one server.
	MaxRDTBytes = 1 << 30
	// listingWindow is as wide as the window of a listing may be to be used whole: what the
	// server's is a client learns from the listing.
	listingWindow = 8192
)

// errRDTDigest is an object that is not what the server's listing says.
var errRDTDigest = fmt.Errorf("%w: its SHA-256 is not the one in the listing", rdt.ErrMalformed)

// RDTFetch is what to take from a server, and who wants it.
type RDTFetch struct {
	From   netip.AddrPort // as far as they are given, the address and port to ask from
	Config RDTConfig      // of it Checksum, InOrder and Patience
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
	RDTEntry
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

// rdtFetch is a fetch under way.
type rdtFetch struct {
	node  *Node
	to    netip.AddrPort
	began clock.Time
	RDTFetch
	result RDTFetched
	got    int64 // bytes of objects that are whole
	total  int64
}

// FetchRDT takes objects from a server: first the listing, then what is wanted of it, up to
// rdt.MaxObjects in one flow. An error means that there is no listing, that a name is not in
// it (rdt.ErrAbsent), that Each had one, or that ctx has ended. What became of each object
// else is in the result, an object that did not come with its error.
func (n *Node) FetchRDT(
	ctx context.Context, to netip.AddrPort, what RDTFetch,
) (RDTFetched, error) {
	f := n.newRDTFetch(to, what)
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
func (f *rdtFetch) over(err error) (RDTFetched, error) {
	if f.began != clock.Never {
		f.result.Took = f.node.now().Sub(f.began)
	}
	return f.result, f.opError(err)
}

// ListRDT asks a server what it has. Of what, From and Config count.
func (n *Node) ListRDT(ctx context.Context, to netip.AddrPort, what RDTFetch) ([]RDTEntry, error) {
	f := n.newRDTFetch(to, what)
	list, err := f.list(ctx)
	return list.Entries, f.opError(err)
}

func (n *Node) newRDTFetch(to netip.AddrPort, what RDTFetch) *rdtFetch {
	f := &rdtFetch{node: n, to: to, RDTFetch: what}
	if !n.closing.Load() {
		f.began = n.now()
	}
	patience := what.Config.Patience
	if patience == 0 {
		patience = rdtPatience
	}
	f.Config = RDTConfig{
		Checksum: what.Config.Checksum, InOrder: what.Config.InOrder, Timeout: rdtRequest,
		Linger: rdtLinger, Patience: patience,
	}
	return f
}

func (f *rdtFetch) opError(err error) error {
	if err == nil {
		return nil
	}
	return RDTError("fetch", f.to, err)
}

// list fetches the listing.
func (f *rdtFetch) list(ctx context.Context) (list rdt.Listing, err error) {
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
	return list, firstError(end, err)
}

// fetch fetches what is wanted of a listing.
func (f *rdtFetch) fetch(ctx context.Context, list *rdt.Listing) error {
	streams, err := f.choose(list)
	if err != nil {
		return err
	}
	place := make(map[uint16]int, len(streams))
	for i, id := range streams {
		e := list.Entries[id-1]
		place[id] = i
		f.total += e.Size
		f.result.Objects = append(f.result.Objects, RDTResult{RDTEntry: e})
	}
	if f.total > MaxRDTBytes {
		return fmt.Errorf("%w: %d bytes, and a fetch may have %d", rdt.ErrTooLarge, f.total,
			int64(MaxRDTBytes))
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
func (f *rdtFetch) choose(list *rdt.Listing) (streams []uint16, err error) {
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
func (f *rdtFetch) complete(r *RDTResult, c *rdt.Completion) error {
	r.Err = netError(c.Err)
	if c.Began != clock.Never {
		r.Began, r.Done = c.Began.Sub(f.began), c.At.Sub(f.began)
	}
	if r.Err == nil && (int64(len(c.Data)) != r.Size || sha256.Sum256(c.Data) != r.SHA256) {
		r.Err = errRDTDigest
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
func (f *rdtFetch) tell(held int64) {
	if f.Progress != nil {
		f.Progress(min(f.total, f.got+held), f.total)
	}
}

// flow receives objects by number, until each has ended.
func (f *rdtFetch) flow(
	ctx context.Context, cfg RDTConfig, wanted []uint16, each func(*rdt.Completion) error,
	progress func(held int64),
) error {
	flow, err := f.node.openRDT(f.From, f.to, cfg, wanted)
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
func (f *rdtFetch) count(flow *rdtFlow) {
	var i rdt.ReceiverInfo
	_ = f.node.call(func(clock.Time) { i = flow.receiver.Info() }) // of a closed node nothing
	r := &f.result
	r.Received += i.Received
	r.Twice += i.Drops[rdt.DropRepeated]
	r.Damaged += i.Drops[rdt.DropChecksum]
	r.Acks += i.Acks
	r.Requests += i.Requests
}
