package node

import (
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Check returns what is wrong with a file beyond what lnx knows of: impair lines whose
// words nobody understands. Open refuses them.
func Check(c *lnx.Config) lnx.Errors { return checkImpairments(c) }

// CheckWords returns what is wrong with the words of an impair line, as of a line that has them
// alone; nil: nothing.
func CheckWords(words string) *lnx.Error {
	_, e := wrongWords(words)
	return e
}
