package node

import (
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Check returns what a file asks for that a node cannot do yet: mistakes of
// nobody's, but Open refuses them. Path is the file's name for the messages.
func Check(path string, c *lnx.Config) lnx.Errors {
	if c.Routing != lnx.RoutingRIP2 {
		return nil
	}
	return lnx.Errors{{
		File: path, Text: "rip2", Msg: "routing rip2: nodes do not speak RIPv2 yet",
		Want: "routing rip",
	}}
}
