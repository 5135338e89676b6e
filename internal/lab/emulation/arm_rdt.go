package emulation

import (
	"context"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/services"
)

// rdtArm is either end of an RDT flow. It uses the server and the client of a node's services. The
// client knows the listing, so it requests the objects at once, as in virtual time.
func rdtArm(ctx context.Context, e *End) error {
	g, err := e.Objects()
	if err != nil {
		return err
	}
	// The document's defaults differ from a node's.
	cfg := e.Flow.App.Objects.RDT.WithDefaults()
	list := &rdt.Listing{Payload: cfg.Payload, Window: cfg.Window}
	cfg.Trust = true // as in virtual time, the server need not verify the client's address
	var objects []rdt.Object
	for i := range g.Items {
		objects = append(objects, rdt.Object{
			Entry: rdt.Entry{
				Name: g.Items[i].Name, Size: int64(len(g.Items[i].Data)), SHA256: g.sum(i),
			},
			Data: g.Items[i].Data,
		})
		list.Entries = append(list.Entries, objects[i].Entry)
	}
	if e.Start.Role == Sender {
		return e.serveRDT(ctx, cfg, objects)
	}
	if !e.Wait(ctx) {
		return context.Cause(ctx)
	}
	var names []string
	number := map[string]int{}
	for _, i := range g.Order {
		names = append(names, g.Items[i].Name)
		number[g.Items[i].Name] = i
	}
	_, err = services.FetchRDT(ctx, e.Node, e.There(), services.RDTFetch{
		Config: cfg, Names: names, Known: list,
		Each: func(r *services.RDTResult) error {
			if r.Err == nil {
				g.Got(number[r.Name], 0, r.Data)
			}
			return nil
		},
	})
	g.Report(err)
	return err
}

// pollInterval is the interval at which a server checks whether it is done.
const pollInterval = 5 * time.Millisecond

// serveRDT serves until the client has everything, or stops answering.
func (e *End) serveRDT(ctx context.Context, cfg rdt.Config, objects []rdt.Object) error {
	s, err := services.ServeRDT(e.Node, e.There(), cfg, objects, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	e.Ready()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var last []rdt.Flow
	for {
		flows := s.Flows()
		if len(flows) > 0 {
			last = flows
		}
		if len(last) > 0 {
			e.countRDT(&last[0])
			if len(flows) == 0 {
				return rdt.ErrSilent
			}
			if last[0].Done {
				// The client's last acknowledgment has arrived, so the port may close.
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (e *End) countRDT(f *rdt.Flow) {
	i := &f.Sender
	e.Set(result.ServerSent, float64(i.Sent))
	e.Set(result.ServerData, float64(i.Sent))
	e.Set(result.Retransmits, float64(i.Resent))
	e.Set(result.Timeouts, float64(i.TimedOut))
	e.Set(result.Recoveries, float64(i.FastResent))
}
