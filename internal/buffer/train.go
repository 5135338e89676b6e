package buffer

// Frame is what a link delivers in one piece: one or more IP packets, each of Size bytes but the
// last, which may be shorter. Data is lent until the link's next read.
type Frame struct {
	Data  []byte
	Size  int
	Iface int
	// Checked: the transport's checksums were made a moment ago by the link, of what
	// the kernel of this machine sent, so that nobody need verify them.
	Checked bool
}

// Packets appends the frame's packets to list.
func (f *Frame) Packets(list [][]byte) [][]byte {
	data, size := f.Data, f.Size
	for len(data) > size {
		list = append(list, data[:size:size])
		data = data[size:]
	}
	if len(data) > 0 {
		list = append(list, data)
	}
	return list
}

// Train is what a link is given in one piece: Count IP packets for one next hop, each of Size bytes
// but the last, which may be shorter. Pieces hold them in wire order; no piece spans two packets.
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

// Batch is the memory that an engine renders trains into: headers and lists of pieces. It stays
// valid until Reset, or until the engine that filled it is called for anything but Output.
type Batch struct {
	trains []Train
	pieces [][]byte
	bytes  []byte
	open   bool // the last train may take more packets
	lent   bool // the last train's list of pieces is AddRun's caller's
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

// Reset empties the batch. A piece that it kept would hold a whole chunk of a ring, which the
// connection has given back.
func (b *Batch) Reset() {
	clear(b.pieces)
	b.trains, b.pieces, b.bytes = b.trains[:0], b.pieces[:0], b.bytes[:0]
	b.open = false
}

// Full reports whether another train of the greatest size might not fit.
func (b *Batch) Full() bool {
	return len(b.trains) == batchTrains || len(b.pieces) > batchPieces-trainPieces ||
		len(b.bytes) > batchBytes-trainBytes
}

// Scratch returns n bytes of the batch's memory for headers or whole packets;
// their content is undefined. It panics when n exceeds what Full promised.
func (b *Batch) Scratch(n int) []byte {
	at := len(b.bytes)
	b.bytes = b.bytes[:at+n]
	return b.bytes[at : at+n : at+n]
}

// Begin opens a packet of size bytes for a next hop; checked: its transport checksum is right. The
// packet joins the last train if it may: same way out, no shorter packet before it, not too long.
// The caller adds its pieces with Add before the next Begin.
func (b *Batch) Begin(iface int, hop [4]byte, size int, checked bool) {
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
func (b *Batch) joins(iface int, hop [4]byte, size int) bool {
	t := &b.trains[len(b.trains)-1]
	return t.Iface == iface && t.NextHop == hop && size <= t.Size &&
		t.Count < MaxTrainPackets && t.Bytes+size <= MaxTrainBytes
}

// Add appends a piece to the packet that Begin opened.
func (b *Batch) Add(piece []byte) {
	b.pieces = append(b.pieces, piece)
	t := &b.trains[len(b.trains)-1]
	t.Pieces = t.Pieces[:len(t.Pieces)+1]
}

// AddRun puts packets into the batch, each as long as the first but the last, which may be
// shorter; checked: their transport checksums are right. It takes as many as fit into one train, at
// least one, and returns how many and their bytes. The batch borrows the list.
func (b *Batch) AddRun(iface int, hop [4]byte, checked bool, packets [][]byte) (n, bytes int) {
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
