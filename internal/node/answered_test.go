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
	node.OpenFile = operator.OpenNode
	node.ReloaderOf = func(
		n *node.Node, file *lnx.Config, reread func() (*lnx.Config, error),
		more func(was, now *lnx.Config) []node.Change,
	) node.Reloader {
		return operator.NewReloader(n, file, reread, func(was, now *lnx.Config) (list []portforward.Change) {
			for _, c := range more(was, now) {
				list = append(list, portforward.Change(c))
			}
			return list
		})
	}
}
