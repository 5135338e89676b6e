//go:build !linux

package main

import "github.com/tidepool-net/tidepool/netns"

func enterHost(string, string, string, netns.Program) (*netns.Process, error) {
	return nil, netns.ErrUnsupported
}
