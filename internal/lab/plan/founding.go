package plan

import (
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/sim/fence"
	"github.com/tidepool-net/tidepool/internal/sim/objects"
)

// spokenBy is the protocol of a flow.
func spokenBy(n *node) Protocol {
	if p := n.get("protocol"); p != nil && slices.Contains(protocolNames, p.text) {
		return Protocol(p.text)
	}
	return TCP
}

// protocolKeys returns the keys of what a flow speaks.
func protocolKeys(n *node) []key[flowOf] {
	return protocolTables[spokenBy(n)][len(flowKeys):]
}

// protocolTables are the keys of all flows with those of each protocol behind them.
var protocolTables = map[Protocol][]key[flowOf]{
	TCP:      slices.Concat(flowKeys, tcpKeys, []key[flowOf]{echoKey, objectsKey}),
	RCP:      slices.Concat(flowKeys, []key[flowOf]{echoKey, burstKey, rcpKey}),
	RDT:      slices.Concat(flowKeys, []key[flowOf]{objectsKey, rdtKey}),
	Notebook: slices.Concat(flowKeys, []key[flowOf]{notebookKey}),
	QUIC:     slices.Concat(flowKeys, []key[flowOf]{objectsKey}),
}

// What founding document 000's client does, in the place of an application.
var (
	echoKey = key[flowOf]{"echo", "", func(d *decoder, n *node, f *flowOf) {
		f.App.Echo = &fence.Config{}
		fill(d, n, "an echo", echoKeys, f.App.Echo)
		if c := f.App.Echo; c.MaxBytes > 0 && c.MinBytes > c.MaxBytes {
			d.bad(firstOf(n, "min_bytes"), "min_bytes is above max_bytes", "")
		} else if c.MaxPause > 0 && c.MinPause > c.MaxPause {
			d.bad(firstOf(n, "min_pause"), "min_pause is above max_pause", "")
		}
	}}
	burstKey = key[flowOf]{"burst", "", func(d *decoder, n *node, f *flowOf) {
		const most = 1 << 10
		f.App.Burst = &fence.BurstConfig{}
		d.count(n, "how many packets at once", most, &f.App.Burst.Packets)
		if e := f.at.get("echo"); e != nil {
			d.bad(n, "a burst and an echo exclude each other", "one of them")
		}
	}}
	rcpKey = key[flowOf]{"rcp", "", func(d *decoder, n *node, f *flowOf) {
		fill(d, n, "RCP", rcpKeys, &f.rcp)
	}}
)

const (
	maxWrites = 1 << 20
	maxPiece  = 1 << 16
	maxMemory = 1 << 30
)

var echoKeys = []key[fence.Config]{
	{"writes", "", func(d *decoder, n *node, c *fence.Config) {
		d.count(n, "how many pieces it writes", maxWrites, &c.Writes)
	}},
	{"min_bytes", "", func(d *decoder, n *node, c *fence.Config) {
		d.size(n, "the shortest piece", 1, maxPiece, &c.MinBytes)
	}},
	{"max_bytes", "", func(d *decoder, n *node, c *fence.Config) {
		d.size(n, "the longest piece", 1, maxPiece, &c.MaxBytes)
	}},
	{"min_pause", "", func(d *decoder, n *node, c *fence.Config) {
		d.time(n, "the shortest rest after a piece", maxDelay, &c.MinPause)
	}},
	{"max_pause", "", func(d *decoder, n *node, c *fence.Config) {
		d.time(n, "the longest rest after a piece", maxDelay, &c.MaxPause)
	}},
}

var rcpKeys = []key[rcp.Config]{
	{"width", "", func(d *decoder, n *node, c *rcp.Config) {
		d.count(n, "how many packets the fence holds", rcp.MaxWidth, &c.Width)
	}},
	{"packet_size", "", func(d *decoder, n *node, c *rcp.Config) {
		const headers = 20 + 8 + rcp.HeaderLen
		d.size(n, "bytes of the stream in a packet", 1, maxMTU-headers, &c.PacketSize)
	}},
	{"tick", "", func(d *decoder, n *node, c *rcp.Config) {
		if t, ok := d.span(n, "the time between two rounds", time.Microsecond, maxTimeout); ok {
			c.Tick = t
		}
	}},
	{"timeout", "", func(d *decoder, n *node, c *rcp.Config) {
		d.time(n, "the silence that ends a socket", maxTimeout, &c.Timeout)
	}},
	{"classic_window", "", func(d *decoder, n *node, c *rcp.Config) { d.truth(n, &c.Window) }},
	{"timer", "", func(d *decoder, n *node, c *rcp.Config) { d.truth(n, &c.Timer) }},
	{"max_rto", "", func(d *decoder, n *node, c *rcp.Config) { d.timeout(n, &c.MaxRTO) }},
	{"send_buffer", "", func(d *decoder, n *node, c *rcp.Config) {
		d.size(n, "a buffer", 1, maxMemory, &c.SendBuffer)
	}},
	{"recv_buffer", "", func(d *decoder, n *node, c *rcp.Config) {
		d.size(n, "a buffer", 1, maxMemory, &c.RecvBuffer)
	}},
}

// What founding document 003's client fetches.
var (
	objectsKey = key[flowOf]{"objects", "", func(d *decoder, n *node, f *flowOf) {
		f.App.Objects = &objects.Config{Arm: objects.Sequential}
		keys := objectKeys
		if f.Protocol == TCP {
			keys = slices.Concat(keys, orderKeys)
		}
		fill(d, n, "objects", keys, f.App.Objects)
		if f.App.Echo != nil {
			d.bad(n, "objects and an echo exclude each other", "one of them")
		}
	}}
	rdtKey = key[flowOf]{"rdt", "", func(d *decoder, n *node, f *flowOf) {
		fill(d, n, "RDT", rdtKeys, &f.rdt)
	}}
)

const maxRandom = 1 << 26

var objectKeys = []key[objects.Config]{
	{"pairs", "", func(d *decoder, n *node, c *objects.Config) {
		d.count(n, "how many small objects, and large ones", rdt.MaxObjects/2, &c.Pairs)
	}},
	{"small", "", func(d *decoder, n *node, c *objects.Config) {
		d.size(n, "random bytes of a small object", 1, maxRandom, &c.Small)
	}},
	{"large", "", func(d *decoder, n *node, c *objects.Config) {
		d.size(n, "random bytes of a large object", 1, maxRandom, &c.Large)
	}},
	{"smallest_first", "", func(d *decoder, n *node, c *objects.Config) {
		d.truth(n, &c.SmallestFirst)
	}},
}

// orderKeys are for objects over TCP.
var orderKeys = []key[objects.Config]{
	{"order", "", func(d *decoder, n *node, c *objects.Config) {
		arms := []objects.Arm{objects.Sequential, objects.Interleaved, objects.Parallel}
		var words []string
		for _, a := range arms {
			words = append(words, a.String())
		}
		if w, ok := d.word(n, "an order of objects", words); ok {
			c.Arm = arms[slices.Index(words, w)]
		}
	}},
	{"read_cost", "", func(d *decoder, n *node, c *objects.Config) {
		d.time(n, "what it takes to read 1024 bytes", time.Second, &c.ReadCost)
	}},
	{"chunk", "", func(d *decoder, n *node, c *objects.Config) {
		const most = 1<<16 - 1
		d.size(n, "bytes of an object in its turn", 1, most, &c.Chunk)
	}},
}

var rdtKeys = []key[objects.Config]{
	{"payload", "", func(d *decoder, n *node, c *objects.Config) {
		d.size(n, "bytes of an object in a packet", 1, rdt.MaxPayload, &c.RDT.Payload)
	}},
	{"window", "", func(d *decoder, n *node, c *objects.Config) {
		d.segments(n, "how many packets without an acknowledgment", rdt.MaxWindow, &c.RDT.Window)
	}},
	{"checksum", "", func(d *decoder, n *node, c *objects.Config) {
		sums := []rdt.Checksum{rdt.MD5, rdt.CRC32C}
		words := []string{rdt.MD5.String(), rdt.CRC32C.String()}
		if w, ok := d.word(n, "a checksum", words); ok {
			c.RDT.Checksum = sums[slices.Index(words, w)]
		}
	}},
	{"timeout", "", func(d *decoder, n *node, c *objects.Config) { d.timeout(n, &c.RDT.Timeout) }},
	{"adaptive", "", func(d *decoder, n *node, c *objects.Config) { d.truth(n, &c.RDT.Adaptive) }},
	{"min_timeout", "", func(d *decoder, n *node, c *objects.Config) {
		d.timeout(n, &c.RDT.MinTimeout)
	}},
	{"max_timeout", "", func(d *decoder, n *node, c *objects.Config) {
		d.timeout(n, &c.RDT.MaxTimeout)
	}},
	{"duplicates", "", func(d *decoder, n *node, c *objects.Config) {
		d.count(n, "how many duplicates tell of a loss", rdt.MaxWindow, &c.RDT.Duplicates)
	}},
	{"selective", "", func(d *decoder, n *node, c *objects.Config) {
		d.truth(n, &c.RDT.Selective)
	}},
	{"compress", "", func(d *decoder, n *node, c *objects.Config) { d.truth(n, &c.RDT.Compress) }},
	{"interleave", "", func(d *decoder, n *node, c *objects.Config) {
		d.truth(n, &c.RDT.Interleave)
	}},
	{"in_order", "", func(d *decoder, n *node, c *objects.Config) { d.truth(n, &c.RDT.InOrder) }},
	{"push", "", func(d *decoder, n *node, c *objects.Config) { d.truth(n, &c.RDT.Push) }},
	{"patience", "", func(d *decoder, n *node, c *objects.Config) {
		d.time(n, "how long it goes on without progress", maxSpan/7, &c.RDT.Patience)
	}},
	{"cost", "", func(d *decoder, n *node, c *objects.Config) { d.cost(n, &c.Cost) }},
	{"buffer", "", func(d *decoder, n *node, c *objects.Config) {
		d.size(n, "the sockets' receive buffer", 1, maxMemory, &c.Buffer)
	}},
}

// cost reads what a turn takes; none: no time, for which the programs have a negative number.
func (d *decoder) cost(n *node, to *time.Duration) {
	if t, ok := d.span(n, "what a packet costs its sender", 0, time.Second); ok {
		if *to = t; t == 0 {
			*to = -1
		}
	}
}

// What founding document 002's senders do.
var notebookKey = key[flowOf]{"notebook", "", func(d *decoder, n *node, f *flowOf) {
	s := strategyOf{}
	fill(d, n, "a notebook", notebookKeys, &s)
	f.strategy = s
	switch fixed := s.name == "fixed"; {
	case fixed && s.Fixed == 0:
		d.bad(n, "a fixed window without its size", "window: 1000")
	case !fixed && s.Fixed > 0:
		d.bad(n.get("window"), "a window is fixed with strategy: fixed alone", "ssthresh or cwnd")
	case fixed && (s.Tahoe.Ssthresh > 0 || s.Tahoe.Cwnd > 0 || s.Tahoe.Even):
		d.bad(firstOf(n, "ssthresh", "cwnd", "even"), "that is Tahoe's", "strategy: tahoe")
	}
}}

// strategyOf is a NotebookApp in the making.
type strategyOf struct {
	NotebookApp
	name string
}

var notebookKeys = []key[strategyOf]{
	{"strategy", "tahoe", func(d *decoder, n *node, s *strategyOf) {
		s.name, _ = d.word(n, "a strategy", []string{"tahoe", "fixed"})
	}},
	{"window", "", func(d *decoder, n *node, s *strategyOf) {
		d.segments(n, "a fixed window", maxSegmentsKept, &s.Fixed)
	}},
	{"ssthresh", "", func(d *decoder, n *node, s *strategyOf) {
		d.segments(n, "a slow start threshold", maxSegmentsKept, &s.Tahoe.Ssthresh)
	}},
	{"cwnd", "", func(d *decoder, n *node, s *strategyOf) {
		d.segments(n, "a first window", maxSegmentsKept, &s.Tahoe.Cwnd)
	}},
	{"even", "", func(d *decoder, n *node, s *strategyOf) { d.truth(n, &s.Tahoe.Even) }},
	{"sender_cost", "", func(d *decoder, n *node, s *strategyOf) { d.cost(n, &s.SenderCost) }},
	{"receiver_cost", "", func(d *decoder, n *node, s *strategyOf) { d.cost(n, &s.ReceiverCost) }},
	{"held_cost", "", func(d *decoder, n *node, s *strategyOf) { d.cost(n, &s.HeldCost) }},
	{"buffer", "", func(d *decoder, n *node, s *strategyOf) {
		d.segments(n, "datagrams that a socket queues", 1<<20, &s.Buffer)
	}},
	{"recv_window", "", func(d *decoder, n *node, s *strategyOf) {
		d.segments(n, "segments that the receiver keeps", maxSegmentsKept, &s.Window)
	}},
}

// maxSegmentsKept is what a receiver of the notebook's can be told to keep.
const maxSegmentsKept = 1 << 24

// finishDocument puts a flow of a founding document together.
func (d *decoder) finishDocument(f *flowOf) {
	switch f.Protocol {
	case RCP:
		if f.rcp.Tick > 0 && f.rcp.Timeout > 0 && f.rcp.Timeout <= f.rcp.Tick {
			d.bad(f.at.get("rcp"), "a timeout that is not longer than a tick", "")
		}
		if f.App.Burst != nil {
			f.App.Burst.RCP = f.rcp
			return
		}
		if f.App.Echo == nil {
			f.App.Echo = &fence.Config{}
		}
		f.App.Echo.RCP = f.rcp
	case RDT:
		c := f.rdt
		if o := f.App.Objects; o != nil {
			c.Pairs, c.Small, c.Large, c.SmallestFirst = o.Pairs, o.Small, o.Large, o.SmallestFirst
		}
		c.Arm = objects.RDT
		f.App.Objects = &c
	case Notebook:
		s := f.strategy.NotebookApp
		if f.Stop > 0 {
			s.Duration = f.Stop - f.Start
		}
		f.App.Notebook = &s
	case QUIC:
		if f.App.Objects == nil {
			f.App.Objects = &objects.Config{}
		}
		f.App.Objects.Arm = objects.Parallel // a stream for each
	case TCP:
	}
}
