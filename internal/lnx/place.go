package lnx

import "strconv"

// AtUDP is an error about the UDP address of an interface, at its place in the file; nil:
// the interface is of no file.
func (c *Config) AtUDP(i *Interface, msg, want string) *Error {
	if i.udpAt.Line == 0 { // an old grammar
		return c.at(i.Pos, "", msg, want)
	}
	return c.at(i.udpAt, i.UDP.String(), msg, want)
}

// AtNeighbor is an error about the UDP address of a neighbour; nil: it is of no file.
func (c *Config) AtNeighbor(n *Neighbor, msg, want string) *Error {
	if n.udpAt.Line == 0 {
		return c.at(n.Pos, "", msg, want)
	}
	return c.at(n.udpAt, n.UDP.String(), msg, want)
}

// Line is where the file names a neighbour, such as "A.lnx:3"; empty: it is of no file.
func (c *Config) Line(n *Neighbor) string {
	if c.file == "" || n.Pos.Line == 0 {
		return ""
	}
	return c.file + ":" + strconv.Itoa(n.Pos.Line)
}

func (c *Config) at(pos Pos, text, msg, want string) *Error {
	if c.file == "" || pos.Line == 0 {
		return nil
	}
	e := &Error{
		File: c.file, Line: pos.Line, Col: pos.Col, Text: text, Msg: msg, Want: want,
	}
	if pos.Line <= len(c.lines) {
		e.Source = c.lines[pos.Line-1]
	}
	return e
}
