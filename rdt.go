package tidepool

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/services"
)

// RDT is how the reliable data transfer of founding document 003 behaves at one end: objects
// with names, many in one flow of UDP, by selective repeat and with no congestion
// control: it is for networks that are one's own. The server, who
// sends, has its say in all but Checksum, where it follows each client; of a client's RDT
// Checksum and Patience count.
type RDT struct {
	// Window is how many packets may be without an acknowledgment, 1 to 32768; 0: 128. Nothing
	// paces them, so all may wait in one receive buffer on their way: 128 of 1325 bytes are 174
	// kB, which the usual ones hold, the document's 1120 are 1.5 MB. What finds no room is lost
	// and sent again.
	Window int
	// Payload is how many bytes of an object a packet carries, 1 to 65455; 0: 1325.
	Payload int
	// Checksum is what packets are verified by: "md5" or "crc32c"; empty: "md5".
	Checksum string
	// Timeout is how long a packet waits for its acknowledgment until it is sent again; 0: as
	// long as round trips suggest (RFC 6298), a second as long as there was none. The
	// document's is a second.
	Timeout time.Duration
	// Cumulative has acknowledgments name nothing but the packet that is expected next, as the
	// document does, so that what was lost is found out one by one. Otherwise they name the
	// packet that they answer, too, and nothing is repeated but what was lost.
	Cumulative bool
	// Compress compresses each packet that becomes shorter by it (RFC 1950).
	Compress bool
	// Interleave lets the objects of a flow take turns, a packet each.
	Interleave bool
	// Patience is how long an end goes on without progress; 0: 10 s.
	Patience time.Duration
}

func (r RDT) config() (rdt.Config, error) {
	sum, err := services.ParseChecksum(r.Checksum)
	return rdt.Config{
		Window: r.Window, Payload: r.Payload, Checksum: sum, Timeout: r.Timeout,
		Selective: !r.Cumulative, Compress: r.Compress, Interleave: r.Interleave,
		Patience: r.Patience,
	}, err
}

// RDTObject is an object with a name: printing words with a slash between them, none of them
// empty, "." or "..", 1024 bytes in all at the most.
type RDTObject struct {
	Name string
	Data []byte
}

// RDTServer gives objects to whoever asks.
type RDTServer struct{ server *services.RDTServer }

// ServeRDT gives objects to whoever asks on a UDP port, until Close; the zero netip.Addr is any
// address of the node, and port 0 one that is free. Their bytes must not change until then.
// An address that has only asked is sent 4 kB, and the rest when it has answered, for a request can
// be forged. It serves 64 clients at a time, and 65535 objects of less than 4 GiB each. Errors:
// syscall.EINVAL for an RDT or objects that cannot be, and those of ListenUDP.
func (n *Node) ServeRDT(on netip.AddrPort, how RDT, list ...RDTObject) (*RDTServer, error) {
	if !on.Addr().IsValid() {
		on = netip.AddrPortFrom(netip.IPv4Unspecified(), on.Port())
	}
	wares := make([]rdt.Object, 0, len(list))
	for _, o := range list {
		wares = append(wares, services.NewObject(o.Name, o.Data))
	}
	cfg, err := how.config()
	if err != nil {
		return nil, services.OpError("listen", unmap(on), err)
	}
	s, err := services.ServeRDT(n.inner().Node, unmap(on), cfg, wares, nil)
	if err != nil {
		return nil, err
	}
	return &RDTServer{s}, nil
}

// Addr returns a *net.UDPAddr.
func (s *RDTServer) Addr() net.Addr { return s.inner().Addr() }

// Close ends the server, and what its clients have not got by then, who notice the silence.
func (s *RDTServer) Close() error { return s.inner().Close() }

// RDTServed is what a server gives to one client.
type RDTServed struct {
	Client netip.AddrPort
	// Objects, of so many Bytes, are those that the client has asked for.
	Objects int
	Bytes   int64
	// Took is from the request to the last acknowledgment, or until now, if not Done.
	Took time.Duration
	Done bool
	// Sent are packets of data, of which Again were repeats: FastAgain because of duplicate
	// acknowledgments, TimedOut because there was none in time.
	Sent, Again, FastAgain, TimedOut uint64
	// RTT is the smoothed round-trip time; 0: it was not measured.
	RTT time.Duration
}

// Served describes the flows to clients, one for each time that one asked, in the order in
// which they began. One that is over, or whose client is silent, is forgotten after a while.
func (s *RDTServer) Served() []RDTServed {
	var list []RDTServed
	for _, f := range s.inner().Flows() {
		list = append(list, RDTServed{
			Client: f.Peer, Objects: f.Objects, Bytes: f.Bytes, Took: f.Took, Done: f.Done,
			Sent: f.Sender.Sent, Again: f.Sender.Resent, FastAgain: f.Sender.FastResent,
			TimedOut: f.Sender.TimedOut, RTT: f.Sender.SRTT,
		})
	}
	return list
}

// RDTEntry is an object that a server has.
type RDTEntry struct {
	Name   string
	Size   int64
	SHA256 [32]byte
}

// ListRDT asks a server what it has. Errors: syscall.ECONNREFUSED if there is none at that
// port, syscall.ETIMEDOUT if it is silent for RDT.Patience, and the cause of ctx's end.
func (n *Node) ListRDT(ctx context.Context, server netip.AddrPort, how RDT) ([]RDTEntry, error) {
	cfg, err := how.config()
	if err != nil {
		return nil, services.OpError("fetch", unmap(server), err)
	}
	what := services.RDTFetch{Config: cfg}
	found, err := services.ListRDT(ctx, n.inner().Node, unmap(server), what)
	var list []RDTEntry
	for i := range found {
		list = append(list, RDTEntry(found[i]))
	}
	return list, err
}

// RDTResult is what became of one object that was asked for. Times count from the first
// request.
type RDTResult struct {
	RDTEntry
	// Data is the object, whose SHA-256 was compared; nil if there is an Err.
	Data []byte
	// Began is when the first of it arrived, Done when the last did; 0: nothing has.
	Began, Done time.Duration
	// Err is syscall.ETIMEDOUT if the server fell silent, and says else what is wrong with it.
	Err error
}

// RDTInfo is what a fetch took.
type RDTInfo struct {
	Took time.Duration
	// Received packets brought something new, Twice what was there already, and Damaged had a
	// wrong checksum. Acks and Requests were sent.
	Received, Twice, Damaged, Acks, Requests uint64
}

// FetchRDT takes objects from a server, those with these names in this order or without names
// all, and calls each with every one when it has ended, which need not be in that order: one
// that has lost a packet does not keep the others waiting. An error of each ends the fetch
// and is returned. Otherwise errors are those of ListRDT, syscall.ENOENT for a name that the
// server does not have, and EFBIG for more than 1 GiB.
func (n *Node) FetchRDT(
	ctx context.Context, server netip.AddrPort, how RDT, each func(RDTResult) error,
	names ...string,
) (RDTInfo, error) {
	cfg, err := how.config()
	if err != nil {
		return RDTInfo{}, services.OpError("fetch", unmap(server), err)
	}
	var own error
	what := services.RDTFetch{Config: cfg, Names: names}
	what.Each = func(r *services.RDTResult) error {
		if each == nil {
			return nil
		}
		own = each(RDTResult{
			RDTEntry: RDTEntry(r.Entry), Data: r.Data, Began: r.Began, Done: r.Done, Err: r.Err,
		})
		return own
	}
	f, err := services.FetchRDT(ctx, n.inner().Node, unmap(server), what)
	if own != nil {
		err = own
	}
	return RDTInfo{
		Took: f.Took, Received: f.Received, Twice: f.Twice, Damaged: f.Damaged, Acks: f.Acks,
		Requests: f.Requests,
	}, err
}
