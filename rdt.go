package tidepool

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/services"
)

// RDT configures one end of the reliable data transfer of founding document 003. It transfers many
// named objects in one UDP flow, by selective repeat. It has no congestion control: use it only on
// networks of your own. The server sends, and uses all fields except Checksum, which each client
// chooses. A client uses only its Checksum and Patience.
type RDT struct {
	// Window is the largest number of unacknowledged packets, 1 to 32768. 0: 128. The packets are
	// not paced, so a receive buffer on the path must hold all of them: 128 packets of 1325 bytes
	// are 174 kB, which common buffers hold. The document's 1120 packets are 1.5 MB. Packets that
	// do not fit are lost and retransmitted.
	Window int
	// Payload is the number of bytes of an object in a packet, 1 to 65455. 0: 1325.
	Payload int
	// Checksum verifies packets: "md5" or "crc32c". Empty: "md5".
	Checksum string
	// Timeout is the time until an unacknowledged packet is retransmitted. 0: calculated from
	// round-trip times (RFC 6298), and 1 s before the first. The document's value is 1 s.
	Timeout time.Duration
	// Cumulative makes acknowledgments contain only the next expected packet, as in the document.
	// Each loss then takes a round trip to find. Otherwise they also contain the packet that they
	// acknowledge, and only lost packets are retransmitted.
	Cumulative bool
	// Compress compresses packets, unless that makes them longer (RFC 1950).
	Compress bool
	// Interleave sends one packet of each object in turn.
	Interleave bool
	// Patience is how long an end waits without progress. 0: 10 s.
	Patience time.Duration
}

func (r RDT) config() (rdt.Config, error) {
	return services.RDTConfig(new(control.RDTOptions(r)))
}

// RDTObject is a named object. A name consists of printable words with slashes between them, none
// of which is empty, "." or "..", and has at most 1024 bytes.
type RDTObject struct {
	Name string
	Data []byte
}

// RDTServer serves objects.
type RDTServer struct{ server *services.RDTServer }

// ServeRDT serves objects at a UDP port until Close. The zero netip.Addr means all addresses of the
// node, and port 0 a free port. The caller must not change the objects' data until then.
//
// Requests can be forged, so an address that has only sent a request receives 4 kB, and the rest
// once it has acknowledged them. The server has at most 64 clients at a time, and 65535 objects of
// less than 4 GiB each. Errors: syscall.EINVAL for an invalid RDT or object, and the errors of
// ListenUDP.
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

// Close ends the server and its transfers. Clients notice only that the server is silent.
func (s *RDTServer) Close() error { return s.inner().Close() }

// RDTServed describes one transfer to a client.
type RDTServed struct {
	Client netip.AddrPort
	// Objects is how many objects the client requested, and Bytes their total size.
	Objects int
	Bytes   int64
	// Took is the time from the request to the last acknowledgment, or until now if not Done.
	Took time.Duration
	Done bool
	// Sent counts data packets, Again the retransmissions among them: FastAgain after duplicate
	// acknowledgments, TimedOut after a timeout.
	Sent, Again, FastAgain, TimedOut uint64
	// RTT is the smoothed round-trip time. 0: not measured.
	RTT time.Duration
}

// Served returns the transfers, one for each request, in order of their start. Transfers that
// ended, or whose client is silent, are removed after a while.
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

// RDTEntry describes an object of a server.
type RDTEntry struct {
	Name   string
	Size   int64
	SHA256 [32]byte
}

// ListRDT returns the list of a server's objects. Errors: syscall.ECONNREFUSED if no server uses
// the port, syscall.ETIMEDOUT if it is silent for RDT.Patience, and the cause of ctx when ctx ends.
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

// RDTResult is the result for one requested object. Times are relative to the first request.
type RDTResult struct {
	RDTEntry
	// Data is the object, verified by its SHA-256, or nil if there is an Err.
	Data []byte
	// Began is when its first packet arrived, Done when its last packet arrived. 0: not yet.
	Began, Done time.Duration
	// Err is syscall.ETIMEDOUT if the server became silent. Other errors say what is wrong.
	Err error
}

// RDTInfo has the counters of a fetch.
type RDTInfo struct {
	Took time.Duration
	// Received counts packets with new data, Twice duplicates, and Damaged packets with a wrong
	// checksum. Acks and Requests count the packets sent.
	Received, Twice, Damaged, Acks, Requests uint64
}

// FetchRDT requests the objects with these names in this order, or all objects if there are no
// names. It calls each with every object as it completes. That order can differ, because an object
// that lost a packet does not delay the others. If each returns an error, the fetch ends with it.
// Other errors are the errors of ListRDT, syscall.ENOENT for a name that the server does not have,
// and EFBIG for more than 1 GiB.
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
