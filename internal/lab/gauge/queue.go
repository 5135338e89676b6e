package gauge

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// queueWords are what mahimahi says of a queue in its logs, in the same form of those that it has
// not.
func queueWords(d netem.Discipline) string {
	name, b := plan.QueueBound(d)
	var limits []string
	if b.Bytes > 0 {
		limits = append(limits, fmt.Sprintf("bytes=%d", b.Bytes))
	}
	if b.Packets > 0 {
		limits = append(limits, fmt.Sprintf("packets=%d", b.Packets))
	}
	if b.Time > 0 {
		limits = append(limits, fmt.Sprintf("time=%dms", b.Time/time.Millisecond))
	}
	if len(limits) == 0 {
		if name == "droptail" {
			return "infinite"
		}
		return name
	}
	return name + " [" + strings.Join(limits, ", ") + "]"
}
