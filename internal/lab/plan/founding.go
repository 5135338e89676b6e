package plan

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
)

func (f *flowDraft) readEcho(d *decoder, n *node) {
	c := &workload.EchoConfig{}
	f.App.Echo = c
	d.fill(n, "an echo", echoKeys(c))
	if c.MaxBytes > 0 && c.MinBytes > c.MaxBytes {
		d.bad(firstOf(n, "min_bytes"), "min_bytes is above max_bytes", "")
	} else if c.MaxPause > 0 && c.MinPause > c.MaxPause {
		d.bad(firstOf(n, "min_pause"), "min_pause is above max_pause", "")
	}
}

func (f *flowDraft) readBurst(d *decoder, n *node) {
	const most = 1 << 10
	f.App.Burst = &workload.BurstConfig{}
	readCount("a number of packets", most, &f.App.Burst.Packets)(d, n)
	if f.at.get("echo") != nil {
		d.bad(n, "a burst and an echo cannot be used together", "only one of them")
	}
}

const (
	maxWrites = 1 << 20
	maxPiece  = 1 << 16
	maxMemory = 1 << 30
)

func echoKeys(c *workload.EchoConfig) []key {
	return []key{
		{"writes", "", readCount("a number of writes", maxWrites, &c.Writes)},
		{"min_bytes", "", readSize("the smallest write", 1, maxPiece, &c.MinBytes)},
		{"max_bytes", "", readSize("the largest write", 1, maxPiece, &c.MaxBytes)},
		{"min_pause", "", readTime("the shortest pause after a write", maxDelay, &c.MinPause)},
		{"max_pause", "", readTime("the longest pause after a write", maxDelay, &c.MaxPause)},
	}
}

func rcpKeys(c *rcp.Config) []key {
	const mostBytes = maxMTU - (20 + 8 + rcp.HeaderLen)
	return []key{
		{"width", "", readCount("the number of packets in the fence", rcp.MaxWidth, &c.Width)},
		{"packet_size", "", readSize(
			"bytes of the stream in a packet", 1, mostBytes, &c.PacketSize)},
		{"tick", "", readTimeFrom(
			time.Microsecond, "the time between two rounds", maxTimeout, &c.Tick)},
		{"timeout", "", readTime("the idle timeout of a socket", maxTimeout, &c.Timeout)},
		{"classic_window", "", readSwitch(&c.Window)},
		{"timer", "", readSwitch(&c.Timer)},
		{"max_rto", "", readTimeout(&c.MaxRTO)},
		{"send_buffer", "", readSize("a buffer", 1, maxMemory, &c.SendBuffer)},
		{"recv_buffer", "", readSize("a buffer", 1, maxMemory, &c.RecvBuffer)},
	}
}

func (f *flowDraft) readObjects(d *decoder, n *node) {
	c := &workload.ObjectsConfig{Arm: workload.Sequential}
	f.App.Objects = c
	keys := objectKeys(c)
	if f.Protocol == TCP {
		keys = append(keys, orderKeys(c)...)
	}
	d.fill(n, "objects", keys)
	if f.App.Echo != nil {
		d.bad(n, "objects and an echo cannot be used together", "only one of them")
	}
}

const maxRandom = 1 << 26

func objectKeys(c *workload.ObjectsConfig) []key {
	return []key{
		{"pairs", "", readCount(
			"the number of small objects, and of large objects", rdt.MaxObjects/2, &c.Pairs)},
		{"small", "", readSize("the size of a small object", 1, maxRandom, &c.Small)},
		{"large", "", readSize("the size of a large object", 1, maxRandom, &c.Large)},
		{"smallest_first", "", readSwitch(&c.SmallestFirst)},
	}
}

func orderKeys(c *workload.ObjectsConfig) []key {
	const mostBytes = 1<<16 - 1
	return []key{
		{"order", "", readOneOf("an order of objects", &c.Arm,
			workload.Sequential, workload.Interleaved, workload.Parallel)},
		{"read_cost", "", readTime("the time to read 1024 bytes", time.Second, &c.ReadCost)},
		{"chunk", "", readSize("the bytes of an object per round", 1, mostBytes, &c.Chunk)},
	}
}

func rdtKeys(o *workload.ObjectsConfig) []key {
	c := &o.RDT
	return []key{
		{"payload", "", readSize(
			"the payload of a packet", 1, rdt.MaxPayload, &c.Payload)},
		{"window", "", readSegments(
			"a window", rdt.MaxWindow, &c.Window)},
		{"checksum", "", readOneOf("a checksum", &c.Checksum, rdt.MD5, rdt.CRC32C)},
		{"timeout", "", readTimeout(&c.Timeout)},
		{"adaptive", "", readSwitch(&c.Adaptive)},
		{"min_timeout", "", readTimeout(&c.MinTimeout)},
		{"max_timeout", "", readTimeout(&c.MaxTimeout)},
		{"duplicates", "", readCount(
			"the duplicate acknowledgments that signal a loss", rdt.MaxWindow, &c.Duplicates)},
		{"selective", "", readSwitch(&c.Selective)},
		{"compress", "", readSwitch(&c.Compress)},
		{"interleave", "", readSwitch(&c.Interleave)},
		{"in_order", "", readSwitch(&c.InOrder)},
		{"push", "", readSwitch(&c.Push)},
		{"patience", "", readTime(
			"the time without progress before the sender gives up", maxSpan/7, &c.Patience)},
		{"cost", "", readCost(&o.Cost)},
		{"buffer", "", readSize("the sockets' receive buffer", 1, maxMemory, &o.Buffer)},
	}
}

// readCost reads the time per packet. Zero is stored as -1, because 0 stands for the default.
func readCost(to *time.Duration) reading {
	return func(d *decoder, n *node) {
		if t, ok := d.span(n, "the sender's time per packet", 0, time.Second); ok {
			if *to = t; t == 0 {
				*to = -1
			}
		}
	}
}

// strategyDraft is a NotebookApp that is being read.
type strategyDraft struct {
	NotebookApp
	name string
}

func (s *strategyDraft) read(d *decoder, n *node) {
	d.fill(n, "a notebook", s.keys())
	switch fixed := s.name == "fixed"; {
	case fixed && s.Fixed == 0:
		d.bad(n, "a fixed window needs a size", "window: 1000")
	case !fixed && s.Fixed > 0:
		d.bad(n.get("window"), "a window needs strategy: fixed", "strategy: fixed, or no window")
	case fixed && (s.Tahoe.Ssthresh > 0 || s.Tahoe.Cwnd > 0 || s.Tahoe.Even):
		d.bad(firstOf(n, "ssthresh", "cwnd", "even"), "only Tahoe has this key", "strategy: tahoe")
	}
}

func (s *strategyDraft) keys() []key {
	const most = maxSegmentsKept
	return []key{
		{"strategy", "tahoe", readWord("a strategy", []string{"tahoe", "fixed"}, &s.name)},
		{"window", "", readSegments("a fixed window", most, &s.Fixed)},
		{"ssthresh", "", readSegments("a slow start threshold", most, &s.Tahoe.Ssthresh)},
		{"cwnd", "", readSegments("a first window", most, &s.Tahoe.Cwnd)},
		{"even", "", readSwitch(&s.Tahoe.Even)},
		{"sender_cost", "", readCost(&s.SenderCost)},
		{"receiver_cost", "", readCost(&s.ReceiverCost)},
		{"held_cost", "", readCost(&s.HeldCost)},
		{"buffer", "", readSegments("a socket's queue of datagrams", 1<<20, &s.Buffer)},
		{"recv_window", "", readSegments("the receiver's buffer", most, &s.Window)},
	}
}

// maxSegmentsKept limits the segments that the notebook's receiver keeps.
const maxSegmentsKept = 1 << 24

func (f *flowDraft) finishDocument(d *decoder) {
	switch f.Protocol {
	case RCP:
		if f.rcp.Tick > 0 && f.rcp.Timeout > 0 && f.rcp.Timeout <= f.rcp.Tick {
			d.bad(f.at.get("rcp"), "the timeout must be longer than a tick", "")
		}
		if f.App.Burst != nil {
			f.App.Burst.RCP = f.rcp
			return
		}
		if f.App.Echo == nil {
			f.App.Echo = &workload.EchoConfig{}
		}
		f.App.Echo.RCP = f.rcp
	case RDT:
		c := f.rdt
		if o := f.App.Objects; o != nil {
			c.Pairs, c.Small, c.Large, c.SmallestFirst = o.Pairs, o.Small, o.Large, o.SmallestFirst
		}
		c.Arm = workload.RDT
		f.App.Objects = &c
	case Notebook:
		s := f.strategy.NotebookApp
		if f.Stop > 0 {
			s.Duration = f.Stop - f.Start
		}
		f.App.Notebook = &s
	case QUIC:
		if f.App.Objects == nil {
			f.App.Objects = &workload.ObjectsConfig{}
		}
		f.App.Objects.Arm = workload.Parallel // each object has its own stream
	case TCP:
	}
}
