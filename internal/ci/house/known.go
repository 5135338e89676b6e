package main

// known lists the figures that exceeded their limit when it was set. They must not grow; an entry
// is removed when the figure meets its limit.
var known = map[string]int{
	"lines of Go without tests":        139103,
	"receive path, files":              11,
	"receive path, lines of its files": 2163,
	"send path, files":                 12,
	"send path, lines of its files":    2416,
	"methods of the largest type":      96,
	"files with methods of tcp.Conn":   10,
	"methods of tcp.Conn":              96,
}
