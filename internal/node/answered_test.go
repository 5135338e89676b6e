package node_test

import (
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/portforward"
)

func init() {
	node.OperatorOf = func(n *node.Node) control.Operator { return operator.NewRequests(n) }
	node.ReloaderOf = func(
		n *node.Node, cfg *node.Config, more func(was, now *lnx.Config) []node.Change,
	) node.Reloader {
		return operator.NewReloader(n, cfg, func(was, now *lnx.Config) (list []portforward.Change) {
			for _, c := range more(was, now) {
				list = append(list, portforward.Change(c))
			}
			return list
		})
	}
}
