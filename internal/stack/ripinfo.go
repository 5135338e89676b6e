package stack

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/rip"
)

// RIPInfo is the routing protocol as an operator sees it.
func (s *Stack) RIPInfo(now clock.Time) control.RIPInfo {
	if s.rip == nil {
		return control.RIPInfo{}
	}
	info := s.rip.Info(now)
	t, c := info.Timers, info.Counters
	answer := control.RIPInfo{
		Dialect: "rip", NextUpdate: info.NextUpdate,
		Timers: control.RIPTimers{
			Periodic: t.Periodic, Offset: max(t.PeriodicOffset, 0), Timeout: t.Timeout,
			Garbage: t.Garbage, TriggerMin: max(t.TriggerMin, 0),
			TriggerMax: max(t.TriggerMax, 0), HoldDown: max(t.HoldDown, 0),
		},
		Messages: control.RIPMessages{
			RequestsIn: c.RequestsIn, ResponsesIn: c.ResponsesIn, EntriesIn: c.EntriesIn,
			RequestsOut: c.RequestsOut, ResponsesOut: c.ResponsesOut,
			TriggeredOut: c.TriggeredOut, EntriesOut: c.EntriesOut, Expired: c.Expired,
		},
	}
	if info.Dialect == rip.RIPv2 {
		answer.Dialect = "rip2"
	}
	for _, r := range info.Refused {
		answer.Refused = append(answer.Refused, control.Drop{
			Reason: r.Reason.String(), Packets: r.Count,
		})
	}
	s.describeRIP(&answer, &info)
	return answer
}

// describeRIP fills in the lists.
func (s *Stack) describeRIP(answer *control.RIPInfo, info *rip.Info) {
	for _, f := range info.Interfaces {
		if i := f.Iface; i < len(s.interfaces) && !s.interfaces[i].Addr.IsValid() {
			continue // it is no more
		}
		answer.Interfaces = append(answer.Interfaces, control.RIPInterface{
			Iface: s.faceName(f.Iface), Up: f.Up, Passive: f.Passive, Cost: f.Cost,
			Send: f.Send, Receive: f.Receive, Auth: f.Auth,
			In: f.Received, Out: f.Sent, Entries: f.SentEntries,
		})
	}
	for _, n := range info.Neighbors {
		answer.Neighbors = append(answer.Neighbors, control.RIPNeighbor{
			Iface: s.faceName(n.Iface), Addr: n.Addr, Configured: n.Configured,
			Silent: n.Silent, Version: int(n.Version), Requests: n.Requests,
			Responses: n.Responses, Refused: n.Refused, Routes: n.Routes,
		})
	}
	for _, r := range info.Routes {
		answer.Routes = append(answer.Routes, control.RIPRoute{
			Prefix: r.Prefix, Cost: r.Cost, Tag: int(r.Tag), NextHop: r.NextHop, From: r.From,
			Iface: s.faceName(r.Iface), Age: r.Age, Left: r.Left, Changed: r.Changed,
		})
	}
}

// faceName is an interface's name, empty when there is none of that number.
func (s *Stack) faceName(i int) string {
	if i < 0 || i >= len(s.interfaces) {
		return ""
	}
	return s.interfaces[i].Name
}
