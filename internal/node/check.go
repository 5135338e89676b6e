package node

import (
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Check returns what a file asks for that a node cannot do yet: mistakes of
// nobody's, but Open refuses them. Path is the file's name for the messages.
func Check(path string, c *lnx.Config) lnx.Errors {
	var errs lnx.Errors
	refuse := func(at lnx.Pos, text, msg, want string) {
		errs = append(errs, &lnx.Error{
			File: path, Line: at.Line, Col: at.Col, Text: text, Msg: msg, Want: want,
		})
	}
	if c.Routing == lnx.RoutingRIP2 {
		refuse(lnx.Pos{}, "rip2", "routing rip2: nodes do not speak RIPv2 yet", "routing rip")
	}
	for i := range c.Interfaces {
		f := &c.Interfaces[i]
		if f.Impair != (lnx.Impairments{}) {
			refuse(f.Pos, f.Name, "link "+f.Name+": nodes do not impair links by their files yet",
				"only an mtu; lossyforward drops packets at run time")
		}
	}
	return errs
}
