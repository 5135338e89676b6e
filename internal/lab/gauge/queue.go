package gauge

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// queueWords are what mahimahi says of a queue in its logs, in the same form of those that it has
// not.
func queueWords(d netem.Discipline) string {
	switch q := d.(type) {
	case netem.DropTail:
		return bounded("droptail", netem.Bound(q))
	case netem.DropHead:
		return bounded("drophead", netem.Bound(q))
	case netem.CoDel:
		return bounded("codel", netem.Bound{Packets: q.Packets, Bytes: q.Bytes, Time: q.Time})
	case netem.PIE:
		return bounded("pie", netem.Bound{Packets: q.Packets, Bytes: q.Bytes, Time: q.Time})
	case netem.RED:
		return bounded("red", netem.Bound{Packets: q.Packets, Bytes: q.Bytes, Time: q.Time})
	case netem.FQCoDel:
		return bounded("fq_codel", netem.Bound{Packets: q.Packets, Bytes: q.Bytes})
	}
	return "infinite"
}

// bounded is a queue by its name, with its limits.
func bounded(name string, b netem.Bound) string {
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
