package buffer

// Frame is what a link delivers in one piece: one or more IP packets, each of
// Size bytes but the last, which may be shorter. Data is lent until the link's
// next read.
type Frame struct {
	Data  []byte
	Size  int
	Iface int
	// Checked: the transport's checksums were made a moment ago by the link, of what
	// the kernel of this machine sent, so that nobody need verify them.
	Checked bool
}

// Packets appends the frame's packets to list. Each has the capacity of those behind it.
func (f *Frame) Packets(list [][]byte) [][]byte {
	data, size := f.Data, f.Size
	for len(data) > size {
		list = append(list, data[:size])
		data = data[size:]
	}
	if len(data) > 0 {
		list = append(list, data)
	}
	return list
}

// Train is what a link is given in one piece: Count IP packets for one next
// hop, each of Size bytes but the last, which may be shorter. Pieces hold them
// in wire order; no piece spans two packets.
type Train struct {
	Pieces  [][]byte
	Size    int // bytes of every packet but the last
	Count   int // packets
	Bytes   int // of all packets
	Iface   int
	NextHop [4]byte
	// Checked: the transport's checksums of all packets were made a moment ago.
	Checked bool
}

// Limits of one train: what a single UDP_SEGMENT call takes on every kernel
// that has it.
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

// Dimensions of a Batch. By its pieces it holds nine long trains: their text is read twice,
// for checksums and by the call that sends it, and stays in a processor's own cache meanwhile.
const (
	batchTrains = 64
	batchPieces = 1024
	batchBytes  = 96 << 10
	// What one more train may need of the above.
	trainPieces = 4 * MaxTrainPackets
	trainBytes  = 80*MaxTrainPackets + 2048
)

// Batch is the memory that an engine renders trains into: the headers it
// writes and the lists of pieces it lends. What it holds stays valid until
// Reset, or until the engine that filled it is called for anything but Output.
type Batch struct {
	trains []Train
	pieces [][]byte
	bytes  []byte
	open   bool // the last train may take more packets
	before bool // the last train's Checked, without its last packet
}

// NewBatch returns an empty batch.
func NewBatch() *Batch {
	return &Batch{
		trains: make([]Train, 0, batchTrains),
		pieces: make([][]byte, 0, batchPieces),
		bytes:  make([]byte, 0, batchBytes),
	}
}

// Trains returns the trains gathered so far, in order.
func (b *Batch) Trains() []Train { return b.trains }

// Reset empties the batch. It lets go of what it was lent: a piece of one segment would hold a
// whole chunk of a ring, long after the connection has given it back.
func (b *Batch) Reset() {
	clear(b.pieces)
	b.trains, b.pieces, b.bytes = b.trains[:0], b.pieces[:0], b.bytes[:0]
	b.open = false
}

// Full reports whether another train of the greatest size might not fit.
func (b *Batch) Full() bool {
	return len(b.trains) == cap(b.trains) || cap(b.pieces)-len(b.pieces) < trainPieces ||
		cap(b.bytes)-len(b.bytes) < trainBytes
}

// Scratch returns n bytes of the batch's memory for headers or whole packets;
// their content is undefined. It panics when n exceeds what Full promised.
func (b *Batch) Scratch(n int) []byte {
	at := len(b.bytes)
	b.bytes = b.bytes[:at+n]
	return b.bytes[at : at+n : at+n]
}

// Begin opens a packet of size bytes for a next hop. The packet joins the last
// train if it may: same way out, no shorter packet before it, not too long.
// The caller adds its pieces with Add before the next Begin.
func (b *Batch) Begin(iface int, hop [4]byte, size int) {
	if b.open {
		t := &b.trains[len(b.trains)-1]
		if t.Iface == iface && t.NextHop == hop && size <= t.Size &&
			t.Count < MaxTrainPackets && t.Bytes+size <= MaxTrainBytes {
			t.Count++
			t.Bytes += size
			b.open = size == t.Size
			b.before, t.Checked = t.Checked, false
			return
		}
	}
	at := len(b.pieces)
	b.trains = append(b.trains, Train{
		Pieces: b.pieces[at:at], Size: size, Count: 1, Bytes: size, Iface: iface, NextHop: hop,
	})
	b.open, b.before = true, true
}

// Vouch says that the transport's checksum of the packet that Begin opened was made, or
// verified, a moment ago.
func (b *Batch) Vouch() { b.trains[len(b.trains)-1].Checked = b.before }

// Add appends a piece to the packet that Begin opened.
func (b *Batch) Add(piece []byte) {
	b.pieces = append(b.pieces, piece)
	t := &b.trains[len(b.trains)-1]
	t.Pieces = t.Pieces[:len(t.Pieces)+1]
}

// AddRun puts packets into the batch that lie back to back in data, each of size bytes
// but the last, which may be shorter. It takes as many as fit into one train, at least
// one, and returns how many that are.
func (b *Batch) AddRun(iface int, hop [4]byte, data []byte, size int) int {
	b.Begin(iface, hop, min(size, len(data)))
	t := &b.trains[len(b.trains)-1]
	n := 0
	for {
		p := data[:min(size, len(data))]
		b.pieces = append(b.pieces, p)
		n++
		if data = data[len(p):]; len(data) == 0 || t.Size != size ||
			t.Count == MaxTrainPackets || t.Bytes+size > MaxTrainBytes {
			break
		}
		next := min(size, len(data))
		t.Count++
		t.Bytes += next
		b.open = next == size
	}
	t.Pieces = t.Pieces[:len(t.Pieces)+n]
	return n
}
