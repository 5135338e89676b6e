package node_test

import (
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/requests"
)

func init() {
	node.OperatorOf = func(n *node.Node) control.Operator { return requests.New(n) }
}
