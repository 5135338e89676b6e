package rdt

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A server of named objects lists them in object 0, which is text. The first line has the server's
// parameters. Each further line describes an object, starting with number 1:
//
//	rdt-listing 1 PAYLOAD WINDOW
//	SIZE SHA256 NAME
//
// A client needs only the server's address and port.

// ListingStream is the object number of the listing.
const ListingStream = 0

const listingMagic = "rdt-listing 1 "

// MaxEntries is the maximum number of objects in a listing: all object numbers except the
// listing's.
const MaxEntries = 1<<16 - 1

// MaxListing is the maximum length of a listing in bytes, which a client must hold in memory.
const MaxListing = 16 << 20

// MaxName is the maximum length of a name in bytes.
const MaxName = 1024

// Listing is a server's objects and parameters.
type Listing struct {
	// Payload and Window have the values of the sender's Config.
	Payload, Window int
	Entries         []Entry // entry i describes the object i+1
}

// Entry describes an object.
type Entry struct {
	Name   string
	Size   int64
	SHA256 [32]byte
}

// ValidName reports whether a name is valid: nonempty components of printable characters with
// slashes between them, except "." and "..". As a path, a valid name stays below its base.
func ValidName(name string) bool {
	if name == "" || len(name) > MaxName || !utf8.ValidString(name) {
		return false
	}
	for _, r := range name {
		if !unicode.IsPrint(r) || r == '\\' {
			return false
		}
	}
	for word := range strings.SplitSeq(name, "/") {
		if word == "" || word == "." || word == ".." {
			return false
		}
	}
	return true
}

func (l *Listing) append(b []byte) []byte {
	b = fmt.Appendf(b, "%s%d %d\n", listingMagic, l.Payload, l.Window)
	for i := range l.Entries {
		e := &l.Entries[i]
		b = fmt.Appendf(b, "%d %x %s\n", e.Size, e.SHA256, e.Name)
	}
	return b
}

// ParseListing parses a listing. It returns ErrMalformed for an invalid one.
func ParseListing(b []byte) (Listing, error) {
	var l Listing
	lines := strings.Split(string(b), "\n")
	first, ok := strings.CutPrefix(lines[0], listingMagic)
	payload, window, both := strings.Cut(first, " ")
	if !ok || !both || lines[len(lines)-1] != "" {
		return l, fmt.Errorf("%w: not a listing", ErrMalformed)
	}
	if len(lines)-2 > MaxEntries {
		return l, fmt.Errorf("%w: the listing has %d objects: must be at most %d", ErrMalformed,
			len(lines)-2, MaxEntries)
	}
	if l.Payload, ok = decimal(payload, MaxPayload); !ok || l.Payload == 0 {
		return l, fmt.Errorf("%w: invalid payload size %.10q", ErrMalformed, payload)
	}
	if l.Window, ok = decimal(window, MaxWindow); !ok || l.Window == 0 {
		return l, fmt.Errorf("%w: invalid window %.10q", ErrMalformed, window)
	}
	names := make(map[string]struct{}, len(lines))
	for i, line := range lines[1 : len(lines)-1] {
		e, ok := parseEntry(line)
		if _, twice := names[e.Name]; !ok || twice {
			return l, fmt.Errorf("%w: line %d of the listing is invalid or repeats a name",
				ErrMalformed, i+2)
		}
		names[e.Name] = struct{}{}
		l.Entries = append(l.Entries, e)
	}
	return l, nil
}

func parseEntry(line string) (e Entry, ok bool) {
	size, rest, _ := strings.Cut(line, " ")
	sum, name, _ := strings.Cut(rest, " ")
	n, ok := decimal(size, MaxObject)
	if !ok || len(sum) != hex.EncodedLen(len(e.SHA256)) || !ValidName(name) {
		return e, false
	}
	e.Size, e.Name = int64(n), name
	_, err := hex.Decode(e.SHA256[:], []byte(sum))
	return e, err == nil
}

// decimal parses a number in the form that append writes.
func decimal(text string, most int64) (int, bool) {
	n, err := strconv.ParseInt(text, 10, 0)
	return int(n), err == nil && n >= 0 && n <= most && strconv.FormatInt(n, 10) == text
}
