package node

import (
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
		return 0, netError(fmt.Errorf("%w: checksum %q: want md5 or crc32c", rdt.ErrConfig, name))
	}
	return sum, nil
}

// rdtFlows lists RDT's servers and flows. The loop's.
func (n *Node) rdtFlows(now clock.Time) []control.RDTFlow {
	list := []control.RDTFlow{}
	for _, port := range n.stack.Ports() {
		switch e := port.UDP.Owner.(type) {
		case *RDTServer:
			list = append(list, e.describe(now)...)
		case *rdtFlow:
			list = append(list, e.describe())
		}
	}
	return list
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
