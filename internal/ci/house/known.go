package main

// known lists the figures that exceeded their limit when it was set. They must not grow; an entry
// is removed when the figure meets its limit.
var known = map[string]int{
	"lines of Go without tests": 156000,
}
