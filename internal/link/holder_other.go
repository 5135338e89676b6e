//go:build !linux

package link

import "net/netip"

// Holder tells nothing: this system has no /proc.
func Holder(string, netip.AddrPort) string { return "" }
