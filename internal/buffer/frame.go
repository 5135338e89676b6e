package buffer

// Frame is one delivery of a link: one or more IP packets of Size bytes each. The last packet may
// be shorter. Data is valid until the link's next read.
type Frame struct {
	Data  []byte
	Size  int
	Iface int
	// Checked reports that the packets' transport checksums are known to be right: this machine's
	// kernel sent the packets and the link computed the checksums. Receivers need not verify them.
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
