package main

import (
	"context"
	"net"
	"net/netip"

	"github.com/quic-go/quic-go"

	"github.com/tidepool-net/tidepool/internal/lab/emulation"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// arm runs either end of a QUIC flow.
func arm(ctx context.Context, e *emulation.End) error {
	g, err := e.Objects()
	if err != nil {
		return err
	}
	cfg, err := config(e.Start.MTU)
	if err != nil {
		return err
	}
	on := netip.AddrPortFrom(e.Start.Host, 0)
	if e.Start.Role == emulation.Sender {
		on = e.There()
	}
	pc, err := e.Node.Packets.Listen(on)
	if err != nil {
		return err
	}
	defer pc.Close()
	if err := pc.SetReadBuffer(readerBuffer); err != nil {
		return err
	}
	if e.Start.Role == emulation.Sender {
		var data [][]byte
		for i := range g.Items {
			data = append(data, g.Items[i].Data)
		}
		stats, err := serveObjects(ctx, pc, cfg, data, e.Ready)
		report(e, &stats)
		return err
	}
	if !e.Wait(ctx) {
		return context.Cause(ctx)
	}
	err = fetchObjects(ctx, pc, cfg, net.UDPAddrFromAddrPort(e.There()), g.Order, g.Got)
	g.Report(err)
	return err
}

// report stores the sender's counters. QUIC retransmits the data of every packet that it declares
// lost, in a new packet.
func report(e *emulation.End, s *quic.ConnectionStats) {
	if s.PacketsSent == 0 {
		return
	}
	e.Set(result.ServerSent, float64(s.PacketsSent))
	e.Set(result.Retransmits, float64(s.PacketsLost))
	e.Set(result.RTTMin, s.MinRTT.Seconds())
}
