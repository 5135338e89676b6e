package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Captured is one packet of a file.
type Captured struct {
	At        int64 // nanoseconds since 1970
	Interface int
	Name      string // name of the interface
	Out       bool
	Length    int    // length on the link in bytes
	Data      []byte // the captured part of an IP packet; valid until the next packet
	Comment   string
	Missed    uint64 // packets missing between the previous one and this
}

// ErrLink means that a file has packets that are not IP.
var ErrLink = errors.New("capture: unknown link type")

// errFormat means that a file is not a pcapng file.
var errFormat = errors.New("not a pcapng file")

// Read calls f with each packet of a pcapng file until f fails. From a truncated file it reads the
// complete blocks.
func Read(r io.Reader, f func(*Captured) error) error {
	b, err := newBlockReader(r)
	if err != nil {
		return fmt.Errorf("%w: use a capture written by Wireshark or `capture -w` "+
			"(`editcap OLD NEW.pcapng` converts others)", errFormat)
	}
	for {
		err := b.next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("capture: %w", err)
		}
		var p Captured
		link, ok, err := b.packet(&p)
		if err != nil {
			return fmt.Errorf("capture: %w", err)
		}
		if !ok {
			continue
		}
		cut, ok := linkHeaderLength(link, p.Data)
		if !ok {
			return fmt.Errorf("%w: type %d", ErrLink, link)
		}
		p.Data, p.Length = p.Data[cut:], p.Length-cut
		if err := f(&p); err != nil {
			return err
		}
	}
}

// linkHeaderLength returns the length of the link-layer header in front of an IP packet. For other
// packets it returns 0; their first byte then shows that they are not IP.
func linkHeaderLength(link uint16, data []byte) (int, bool) {
	const (
		ethernet = 14
		cooked   = 16
		ipv4     = 0x0800
		ipv6     = 0x86dd
	)
	switch link {
	case linkRaw, linkRawIP, linkIPv4, linkIPv6:
		return 0, true
	case linkNull, linkLoop:
		return min(4, len(data)), true
	case linkEthernet:
		if len(data) < ethernet {
			return 0, true
		}
		switch binary.BigEndian.Uint16(data[ethernet-2:]) {
		case ipv4, ipv6:
			return ethernet, true
		}
		return 0, true
	case linkSLL:
		return min(cooked, len(data)), true
	default:
		return 0, false
	}
}
