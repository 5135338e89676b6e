package node

import (
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Check returns what is wrong with a file beyond what lnx knows of: impair lines whose
// words nobody understands. Open refuses them.
func Check(c *lnx.Config) lnx.Errors { return checkImpairments(c) }
