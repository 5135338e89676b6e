package realtime

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/lab/gauge"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
)

// side is where an end of an experiment's flow is.
func (s *Start) side(x *plan.Experiment) gauge.Side {
	if (s.Role == Sender) == x.Flows[s.Flow].Upward {
		return gauge.Right
	}
	return gauge.Left
}

// describe fills in who one end of a flow is and what it does.
func (s *Start) describe(x *plan.Experiment, flow int, role Role) {
	f := &x.Flows[flow]
	s.Role, s.Flow, s.Name, s.Protocol = role, flow, f.Name, string(f.Protocol)
	side := s.side(x)
	s.Host = side.Address(flow, gauge.HostNumber)
	s.Gateway = side.Address(flow, gauge.RouterNumber)
	s.Peer = side.Other().Address(flow, gauge.HostNumber)
	s.Port = gauge.Port
	s.MTU = x.HostMTU(f)
	s.Begin, s.Stop = f.Start.Seconds(), f.Stop.Seconds()
	s.Size = f.App.Wanted()
}

// lnxOf is the file of an end's node.
func lnxOf(s *Start) string {
	return fmt.Sprintf("interface %s %s/24 %s\nneighbor %s at %s via %s\nroute 0.0.0.0/0 via %s\n"+
		"link %s mtu %d\n",
		gauge.HostFace, s.Host, s.Local, s.Gateway, s.Remote, gauge.HostFace, s.Gateway,
		gauge.HostFace, s.MTU)
}
