package node

import (
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Check returns what is wrong with a file beyond what lnx knows of: impair lines whose
// words nobody understands, and what a node cannot do yet, a mistake of nobody's. Open
// refuses both. Path is the file's name for the messages.
func Check(path string, c *lnx.Config) lnx.Errors {
	list := checkImpairments(c)
	if c.Routing == lnx.RoutingRIP2 {
		list = append(list, &lnx.Error{
			File: path, Text: "rip2", Msg: "routing rip2: nodes do not speak RIPv2 yet",
			Want: "routing rip",
		})
	}
	return list
}
