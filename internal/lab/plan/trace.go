package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// Loader reads a file that an experiment names.
type Loader func(name string) ([]byte, error)

// trace reads a rate that is a list of opportunities, from a file.
func (d *decoder) trace(n *node, l *link) {
	if n.plain("none") {
		return
	}
	l.unknown = true
	if l.rateNode != nil {
		d.bad(n, "a rate and a trace exclude each other", "one of them")
		return
	}
	l.rateNode = n
	if n.kind != scalar {
		d.bad(n, d.shown(n)+" is not the name of a file", "trace: FILE")
		return
	}
	text, ok := d.file(n, "a trace of mahimahi's")
	if !ok {
		return
	}
	at, err := opportunities(string(text))
	if err != nil {
		d.bad(n, n.text+":"+err.Error(), "a time in milliseconds in each line, in order")
		return
	}
	o := netem.Opportunities{At: at}
	if !d.check(n, o) {
		return
	}
	l.Rate, l.unknown = o, false
	l.mean = d.meanRate(o)
}

// maxOpportunities bounds a trace: ten minutes at 1 Gbit/s have 50 million packets, but not in
// a file that somebody reads.
const maxOpportunities = 10_000_000

// opportunities reads the lines of a trace: when a packet may leave, in milliseconds.
func opportunities(text string) ([]time.Duration, error) {
	lines := strings.Split(strings.TrimRight(text, "\r\n\t "), "\n")
	if len(lines) > maxOpportunities {
		return nil, fmt.Errorf("%d: too many lines", maxOpportunities+1)
	}
	const most = int64(maxSpan / time.Millisecond)
	out := make([]time.Duration, len(lines))
	for i, line := range lines {
		ms, err := strconv.ParseInt(strings.TrimRight(line, "\r\t "), 10, 64)
		switch {
		case err != nil || ms < 0 || ms > most:
			return nil, fmt.Errorf("%d: %s is not a time in milliseconds", i+1, quote(line))
		case i > 0 && time.Duration(ms)*time.Millisecond < out[i-1]:
			return nil, fmt.Errorf("%d: %d is before %v", i+1, ms, out[i-1])
		}
		out[i] = time.Duration(ms) * time.Millisecond
	}
	if out[len(out)-1] == 0 {
		return nil, fmt.Errorf("%d: the last time is 0, so that the trace has no length", len(out))
	}
	return out, nil
}

// file reads a file that the experiment names. While nobody is there to read it, what is in it
// is not known, which is no mistake yet.
func (d *decoder) file(n *node, what string) (text []byte, ok bool) {
	name, ok := d.scalar(n, "the name of "+what)
	if !ok || d.load == nil {
		return nil, false
	}
	text, err := d.load(name)
	if err != nil {
		d.bad(n, err.Error(), what)
		return nil, false
	}
	return text, true
}

// noFiles is the Loader of a File without one.
func noFiles(name string) ([]byte, error) {
	return nil, fmt.Errorf("%s: nothing reads files here", name)
}

// once reads each file no more than one time.
func once(load Loader) Loader {
	type answer struct {
		text []byte
		err  error
	}
	seen := map[string]answer{}
	return func(name string) ([]byte, error) {
		a, ok := seen[name]
		if !ok {
			a.text, a.err = load(name)
			seen[name] = a
		}
		return a.text, a.err
	}
}
