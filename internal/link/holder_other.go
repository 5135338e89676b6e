//go:build !linux

package link

import "net/netip"

// Holder returns nothing: this system has no /proc.
func Holder(string, netip.AddrPort) string { return "" }
