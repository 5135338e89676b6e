package simulation

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
)

// documentApp is the application of a founding document, which has its own counters.
type documentApp interface {
	// Done reports whether the application has finished its work.
	Done() bool
	// report adds the application's counters to the result. It returns whether the application
	// finished, and the reason if it did not.
	report(v result.Values) (finished bool, failure string)
}

// attach starts the application of a founding document on the flow's hosts.
func (f *flow) attach() (documentApp, error) {
	app := &f.spec.App
	client, server := f.sender, f.receiver
	there := netip.AddrPortFrom(f.run.address(f.to, f.index, HostNumber), Port)
	switch {
	case app.Echo != nil && f.spec.Protocol == plan.TCP:
		cfg := *app.Echo
		cfg.Opened = f.watch
		a, err := workload.AttachEchoTCP(client, server, there, cfg)
		return echo{a}, err
	case app.Echo != nil && f.spec.Protocol == plan.RCP:
		a, err := workload.AttachEcho(client, server, there, *app.Echo)
		return echo{a}, err
	case app.Burst != nil && f.spec.Protocol == plan.RCP:
		a, err := workload.AttachBurst(client, server, there, *app.Burst)
		return burst{a}, err
	case app.Objects != nil && f.spec.Protocol == speaks(app.Objects.Arm):
		// Here the server sends the data. The document made its objects once, for all trials.
		cfg := *app.Objects
		cfg.Seed, cfg.Opened = f.run.first, f.watch
		a, err := f.run.cache.Attach(server, client, f.here(), cfg)
		return objectsApp{a}, err
	case app.Notebook != nil && f.spec.Protocol == plan.Notebook:
		return f.attachNotebook(client, server)
	}
	return nil, fmt.Errorf("flow %s: its application cannot use %s: %w", f.spec.Name,
		f.spec.Protocol, errUnsupported)
}

func speaks(a workload.Arm) plan.Protocol {
	if a == workload.RDT {
		return plan.RDT
	}
	return plan.TCP
}

func (f *flow) here() netip.AddrPort {
	return netip.AddrPortFrom(f.run.address(f.to.Other(), f.index, HostNumber), Port)
}

func (f *flow) attachNotebook(sender, receiver *sim.Host) (documentApp, error) {
	n := f.spec.App.Notebook
	cfg := n.NotebookConfig
	cfg.Duration = cmp.Or(cfg.Duration, f.run.x.Duration-f.spec.Start)
	cfg.Record = cfg.Record || f.recorder != nil
	strategy := workload.NewTahoe(n.Tahoe)
	if n.Fixed > 0 {
		strategy = workload.NewFixedWindow(n.Fixed)
	}
	process := &workload.Process{} // all of the document's senders share one receiver process
	for _, other := range f.run.flows {
		if n, ok := other.documentApp.(notebookApp); ok {
			process = n.Process()
		}
	}
	a, err := process.Attach(sender, receiver, f.here(), strategy, cfg)
	return notebookApp{a, n.Duration == 0}, err
}

// echo is the client of founding document 000.
type echo struct{ *workload.EchoApp }

func (e echo) report(v result.Values) (finished bool, failure string) {
	r := e.Result()
	v[result.ClientSent] = float64(r.Sent)
	v[result.ClientData] = float64(r.Data)
	v[result.ClientAcks] = float64(r.Acks)
	v[result.ClientPackets] = float64(r.Packets())
	v[result.Rounds] = float64(r.Rounds)
	v[result.Delivered] = float64(r.Echoed)
	v[result.Retransmits] = float64(r.Again)
	v[result.Timeouts] = float64(r.Timeouts)
	v[result.Recoveries] = float64(r.Recoveries)
	setDuration(v, r.Took, r.Echoed, r.Finished)
	return r.Finished, r.Failure
}

// burst is the thought experiment of founding document 000.
type burst struct{ *workload.Burst }

func (b burst) report(v result.Values) (finished bool, failure string) {
	r := b.Result()
	v[result.ClientData] = float64(r.Sent)
	v[result.Rounds] = float64(r.Rounds)
	setDuration(v, r.Took, 0, r.Finished)
	return r.Finished, r.Failure
}

// objectsApp is the client of founding document 003.
type objectsApp struct{ *workload.ObjectsApp }

func (f objectsApp) report(v result.Values) (finished bool, failure string) {
	r := f.Result()
	v[result.ServerSent] = float64(r.Sent)
	v[result.ServerData] = float64(r.Data)
	v[result.Delivered] = float64(r.Bytes)
	v[result.Retransmits] = float64(r.Again)
	v[result.Timeouts] = float64(r.Timeouts)
	v[result.Recoveries] = float64(r.Recoveries)
	v[result.Damaged] = float64(r.Damaged)
	v[result.ObjectsDone] = float64(r.Complete)
	setDuration(v, r.Took, r.Bytes, r.Finished)
	ObjectValues(v, r.Objects)
	return r.Finished, r.Failure
}

// ObjectValues fills in the mean and the last completion times of the complete objects.
func ObjectValues(v result.Values, list []workload.Object) {
	var all, small, large Histogram
	for i := range list {
		o := &list[i]
		if !o.Complete {
			continue
		}
		all.Add(o.Done)
		if strings.HasPrefix(o.Name, "small") {
			small.Add(o.Done)
		} else {
			large.Add(o.Done)
		}
	}
	for _, part := range []struct {
		of         *Histogram
		mean, last result.Metric
	}{
		{&all, result.ObjectMean, ""},
		{&small, result.SmallMean, result.SmallLast},
		{&large, result.LargeMean, result.LargeLast},
	} {
		if part.of.Count > 0 {
			v[part.mean] = part.of.Mean().Seconds()
			if part.last != "" {
				v[part.last] = part.of.Max.Seconds()
			}
		}
	}
}

// Objects converts the objects of a flow that began at start, for a record.
func Objects(flow string, start time.Duration, list []workload.Object) []result.Object {
	var all []result.Object
	for i := range list {
		o := &list[i]
		row := result.Object{
			Flow: flow, Name: o.Name, Size: o.Size, Start: start + o.Began, Done: o.Complete,
		}
		if o.Complete {
			row.End = start + o.Done
		}
		all = append(all, row)
	}
	return all
}

// notebookApp is the sender of founding document 002, which stops when it is done or at the end of
// the run.
type notebookApp struct {
	*workload.NotebookApp
	endless bool
}

// notebookBytes is the size of a segment in founding document 002.
const notebookBytes = 80

func (n notebookApp) report(v result.Values) (finished bool, failure string) {
	r := n.Result()
	finished, failure = r.Finished, r.Failure
	if n.endless && r.Took > 0 {
		if !n.Failed() {
			finished, failure = true, ""
		}
		r.Throughput = notebookBytes * float64(r.NewAcks) / r.Took.Seconds()
	}
	v[result.NotebookThroughput] = r.Throughput
	v[result.NotebookAcks] = float64(r.TotalAcks)
	v[result.NotebookDuplicates] = r.DuplicatePercent / 100
	v[result.Retransmits] = float64(r.Again)
	v[result.ServerSent] = float64(r.Sent)
	v[result.Delivered] = float64(r.DeliveredBytes)
	if r.Took > 0 {
		v[result.Goodput] = float64(r.DeliveredBytes) * 8 / r.Took.Seconds()
	}
	if r.MaxRTT > 0 {
		v[result.RTTMean] = r.MeanRTT.Seconds()
		v[result.RTTMin] = r.MinRTT.Seconds()
		v[result.RTTMax] = r.MaxRTT.Seconds()
	}
	v[result.CwndMax] = float64(r.MaxCwnd) * notebookBytes
	return finished, failure
}

func (n notebookApp) record(f *flow) {
	r := n.Result()
	f.recorder.SetMSS(notebookBytes)
	for i := range r.Points {
		p := &r.Points[i]
		f.recorder.Row(&result.Sample{
			At: f.spec.Start + p.At, RTT: p.RTT, SRTT: p.RTT,
			Cwnd: p.Cwnd * notebookBytes, Ssthresh: p.Ssthresh * notebookBytes, State: "open",
		})
	}
}

// setDuration sets the goodput, and the completion time if the application finished.
func setDuration(v result.Values, d time.Duration, bytes uint64, finished bool) {
	if finished {
		v[result.Completion] = d.Seconds()
	}
	if d > 0 && bytes > 0 {
		v[result.Goodput] = float64(bytes) * 8 / d.Seconds()
	}
}

func (r *run) endDocumentApps(now clock.Time) {
	left := r.documentApps[:0]
	for _, f := range r.documentApps {
		if f.documentApp.Done() {
			f.end(now)
			continue
		}
		left = append(left, f)
	}
	r.documentApps = left
}
