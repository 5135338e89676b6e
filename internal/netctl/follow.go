package netctl

import (
	"context"
	"reflect"
	"time"
)

// followTime is the interval between two reads of a network's record.
const followTime = time.Second

// Follow calls tell with the network whenever the nodes or files in its record change, until ctx
// ends. A stopped network has no record: the next record is compared with the last one.
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
