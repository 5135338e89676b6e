package netem

// Counters count packets by what happened to them. A packet may be in several counts. At any time
//
//	In + Duplicated = Out + Lost + QueueDropped + Policed + Overflowed + packets inside.
type Counters struct {
	In, InBytes   uint64 // packets and bytes that arrived at the link
	Out, OutBytes uint64 // that left it at the other end
	Lost          uint64 // by the loss model
	QueueDropped  uint64 // by the queue
	Early         uint64 // of these, by active queue management although there was room
	Policed       uint64 // by the policer
	Overflowed    uint64 // by MaxPackets or MaxBytes
	Duplicated    uint64 // copies made
	Corrupted     uint64
	Truncated     uint64
	Reordered     uint64 // by Reorder
	Delayed       uint64 // with a delay
	Marked        uint64 // by the queue or the policer, instead of dropped
}

// Add adds the counts of o.
func (c *Counters) Add(o *Counters) {
	c.In += o.In
	c.InBytes += o.InBytes
	c.Out += o.Out
	c.OutBytes += o.OutBytes
	c.Lost += o.Lost
	c.QueueDropped += o.QueueDropped
	c.Early += o.Early
	c.Policed += o.Policed
	c.Overflowed += o.Overflowed
	c.Duplicated += o.Duplicated
	c.Corrupted += o.Corrupted
	c.Truncated += o.Truncated
	c.Reordered += o.Reordered
	c.Delayed += o.Delayed
	c.Marked += o.Marked
}
