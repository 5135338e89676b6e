//go:build !linux

package link

import "net/netip"

// holder tells nothing: this system has no /proc.
func holder(netip.AddrPort) string { return "" }
