package netem

// Counters count packets by what happened to them. A packet may be in several counts. At any time
//
//	In + Duplicated = Out + Lost + QueueDropped + Policed + Overflowed + packets inside.
type Counters struct {
	In, InBytes   uint64 // packets and bytes that arrived at the link
	Out, OutBytes uint64 // packets and bytes that left at the other end
	Lost          uint64 // dropped by the loss model
	QueueDropped  uint64 // dropped by the queue
	// Early counts packets that active queue management dropped although the queue had room.
	// QueueDropped includes them.
	Early      uint64
	Policed    uint64 // dropped by the policer
	Overflowed uint64 // dropped by MaxPackets or MaxBytes
	Duplicated uint64 // copies made
	Corrupted  uint64
	Truncated  uint64
	Reordered  uint64 // reordered by Reorder
	Delayed    uint64 // put on the wire to arrive after a delay
	Marked     uint64 // marked by the queue or the policer instead of dropped
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
