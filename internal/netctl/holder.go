package netctl

import (
	"context"
	"strings"
	"sync"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Holder is a running node.
type Holder struct{ Network, Node string }

// Holders queries every running node for the ports of this machine that it uses, such as "udp
// 127.0.0.1:5060" or "tcp 127.0.0.1:8080". It omits nodes that do not answer.
func (s *State) Holders(ctx context.Context) map[string]Holder {
	list, err := s.Networks()
	if err != nil {
		return nil // starting the network reports this error
	}
	held := map[string]Holder{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, n := range list {
		for _, m := range n.Nodes {
			wg.Go(func() {
				ports := n.process(m.Name).ports(ctx)
				mu.Lock()
				defer mu.Unlock()
				for _, port := range ports {
					held[port] = Holder{n.Name(), m.Name}
				}
			})
		}
	}
	wg.Wait()
	return held
}

// ports lists the UDP ports of a node's interfaces and the ports that it publishes.
func (p process) ports(ctx context.Context) (list []string) {
	c, ctx, done := p.client(ctx, askTime)
	defer done()
	faces, err := control.Ask(ctx, control.Operator(c), control.Interfaces{})
	if err != nil {
		return nil
	}
	for _, f := range faces {
		at := f.UDP
		if port, ok := strings.CutPrefix(at, "localhost:"); ok {
			at = "127.0.0.1:" + port // the course's files use this address
		}
		list = append(list, "udp "+at)
	}
	doors, _ := control.Ask(ctx, control.Operator(c), control.Doors{}) // old nodes do not answer
	for _, d := range doors {
		if d.Kind == control.DoorPublish && !d.Closing {
			list = append(list, d.Network+" "+d.From)
		}
	}
	return list
}
