package node_test

import (
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/reload"
	"github.com/tidepool-net/tidepool/internal/requests"
)

func init() {
	node.OperatorOf = func(n *node.Node) control.Operator { return requests.New(n) }
	node.ReloaderOf = func(
		n *node.Node, cfg *node.Config, more func(was, now *lnx.Config) []node.Change,
	) node.Reloader {
		return reload.New(n, cfg, func(was, now *lnx.Config) (list []reload.Change) {
			for _, c := range more(was, now) {
				list = append(list, reload.Change(c))
			}
			return list
		})
	}
}
