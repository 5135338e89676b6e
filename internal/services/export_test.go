package services

import (
	"net"

	"github.com/tidepool-net/tidepool/internal/node"
)

// Limits that tests reach.
const (
	HeaderTimeout = headerTimeout
	LeastPiece    = leastPiece
	MaxCounted    = maxCounted
	MaxServed     = maxServed
	MostPiece     = mostPiece
)

// Store is the last step of fetching an object.
var Store = store

// FewAtATime accepts at most n connections of a listener at a time.
func FewAtATime(l *node.Listener, n int) net.Listener {
	return &fewAtATime{Listener: l, room: make(chan struct{}, n)}
}
