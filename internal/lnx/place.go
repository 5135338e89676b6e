package lnx

import "strconv"

// AtUDP returns an error at the UDP address of an interface, or nil if the interface has no file.
func (c *Config) AtUDP(i *Interface, msg, want string) *Error {
	if i.udpAt.Line == 0 {
		return c.at(i.Pos, "", msg, want)
	}
	return c.at(i.udpAt, i.UDP.String(), msg, want)
}

// AtNeighbor returns an error at the UDP address of a neighbor, or nil if the neighbor has no file.
func (c *Config) AtNeighbor(n *Neighbor, msg, want string) *Error {
	if n.udpAt.Line == 0 {
		return c.at(n.Pos, "", msg, want)
	}
	return c.at(n.udpAt, n.UDP.String(), msg, want)
}

// Line returns the position of a neighbor's line, such as "A.lnx:3", or "" if the neighbor has no
// file.
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
