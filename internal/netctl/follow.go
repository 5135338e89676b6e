package netctl

import (
	"context"
	"reflect"
	"time"
)

// followTime is between looks at a network's record.
const followTime = time.Second

// Follow calls tell with the network each time that its record has other nodes than before, or the
// same from other files, until ctx ends. A network that is down has no record: the last that it had
// counts until it is up again.
func (s *State) Follow(ctx context.Context, n *Network, tell func(*Network)) {
	every := time.NewTicker(followTime)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		now, err := s.load(n.Name())
		if err == nil && !reflect.DeepEqual(now.Members(), n.Members()) {
			n = now
			tell(n)
		}
	}
}
