package buffer

import "net/netip"

// Train is the IP packets that a stack passes to a link in one call: Count packets for one next
// hop, of Size bytes each; the last one may be shorter. Pieces holds them in order; none spans two
// packets.
type Train struct {
	Pieces  [][]byte
	Size    int // size in bytes of every packet but the last
	Count   int // number of packets
	Bytes   int // length of all packets together
	Iface   int
	NextHop netip.Addr
	// Checked reports that the transport checksums of all packets were computed just now.
	Checked bool
}

// These limits of a train are the largest that every kernel with UDP_SEGMENT accepts in one call.
const (
	MaxTrainPackets = 64
	MaxTrainBytes   = 65000
)

// Packet returns the pieces of the i-th packet, counted from 0.
func (t *Train) Packet(i int) [][]byte {
	skip := i * t.Size
	at := 0
	for skip > 0 {
		skip -= len(t.Pieces[at])
		at++
	}
	left := min(t.Size, t.Bytes-i*t.Size)
	end := at
	for left > 0 {
		left -= len(t.Pieces[end])
		end++
	}
	return t.Pieces[at:end]
}

// These are the dimensions of a Batch. Its pieces suffice for nine long trains. A core's own cache
// holds their payload between its two reads: for the checksum, and by the system call that sends
// it.
const (
	batchTrains = 64
	batchPieces = 1024
	batchBytes  = 96 << 10
	firstBytes  = 2 << 10
	// These are the largest numbers of pieces and bytes that one more train may need.
	trainPieces = 4 * MaxTrainPackets
	trainBytes  = 80*MaxTrainPackets + 2048
)

// Batch is the memory into which an engine writes trains: headers and lists of pieces. They are
// valid until Reset, or until a call of any method of that engine except Output.
type Batch struct {
	trains []Train
	pieces [][]byte
	bytes  []byte
	open   bool // another packet may join the last train
	lent   bool // AddRun's caller owns the last train's list of pieces
}

// NewBatch returns an empty batch, whose memory grows with its use.
func NewBatch() *Batch { return new(Batch) }

// Trains returns the trains in the order in which they were added.
func (b *Batch) Trains() []Train { return b.trains }

// Reset empties the batch. It clears the pieces, because a piece would keep a whole chunk of a ring
// alive that the connection has freed.
func (b *Batch) Reset() {
	clear(b.pieces)
	b.trains, b.pieces, b.bytes = b.trains[:0], b.pieces[:0], b.bytes[:0]
	b.open = false
}

// Full reports whether another train of the maximum size might not fit.
func (b *Batch) Full() bool {
	return len(b.trains) == batchTrains || len(b.pieces) > batchPieces-trainPieces ||
		len(b.bytes) > batchBytes-trainBytes
}

// Scratch returns n bytes of the batch's memory for headers or whole packets. Their content is
// undefined. It may panic if Full was true before, or if n exceeds what one train may need.
func (b *Batch) Scratch(n int) []byte {
	at := len(b.bytes)
	if at+n > cap(b.bytes) && cap(b.bytes) < batchBytes {
		at = 0 // the packets in the old memory still use it
		b.bytes = make([]byte, 0, min(max(2*cap(b.bytes), n, firstBytes), batchBytes))
	}
	b.bytes = b.bytes[:at+n]
	return b.bytes[at : at+n : at+n]
}

// Begin starts a packet of size bytes; checked says that its transport checksum is right. The
// packet joins the last train if interface and next hop are the same, no packet before it is
// shorter, and the train is not full. The caller adds the packet's pieces with Add before the next
// Begin.
func (b *Batch) Begin(iface int, hop netip.Addr, size int, checked bool) {
	at := len(b.pieces)
	if !b.open || !b.joins(iface, hop, size) {
		b.trains = append(b.trains, Train{
			Pieces: b.pieces[at:at], Size: size, Count: 1, Bytes: size, Iface: iface, NextHop: hop,
			Checked: checked,
		})
		b.open, b.lent = true, false
		return
	}
	t := &b.trains[len(b.trains)-1]
	if b.lent {
		b.pieces = append(b.pieces, t.Pieces...)
		t.Pieces, b.lent = b.pieces[at:], false
	}
	t.Count++
	t.Bytes += size
	t.Checked = t.Checked && checked
	b.open = size == t.Size
}

// joins reports whether a packet may join the last train, which is open.
func (b *Batch) joins(iface int, hop netip.Addr, size int) bool {
	t := &b.trains[len(b.trains)-1]
	return t.Iface == iface && t.NextHop == hop && size <= t.Size &&
		t.Count < MaxTrainPackets && t.Bytes+size <= MaxTrainBytes
}

// Add appends a piece to the packet that Begin opened.
func (b *Batch) Add(piece []byte) {
	b.pieces = append(b.pieces, piece)
	t := &b.trains[len(b.trains)-1]
	t.Pieces = b.pieces[len(b.pieces)-len(t.Pieces)-1:] // append may have moved the list
}

// AddRun adds packets of the same length, of which the last may be shorter. checked says that their
// transport checksums are right. It adds at least one, and at most as many as fit into one train.
// It returns their number and their bytes. The batch uses the list until Reset.
func (b *Batch) AddRun(iface int, hop netip.Addr, checked bool, packets [][]byte) (n, bytes int) {
	size := len(packets[0])
	if b.open && b.joins(iface, hop, size) {
		b.Begin(iface, hop, size, checked)
		b.Add(packets[0])
		return 1, size
	}
	n, bytes = 1, size
	if len(packets) > 1 {
		n = min(len(packets), MaxTrainPackets, max(1, MaxTrainBytes/size))
		bytes = (n-1)*size + len(packets[n-1])
	}
	b.trains = append(b.trains, Train{
		Pieces: packets[:n], Size: size, Count: n, Bytes: bytes, Iface: iface, NextHop: hop,
		Checked: checked,
	})
	b.open, b.lent = bytes == n*size, true
	return n, bytes
}
