package e2e_test

import (
	"bufio"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// output collects everything that a node prints. Both streams share one pipe, so errors appear in
// order with the output.
type output struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced when a line arrives
	over  bool          // the output has ended
}

func newOutput() *output { return &output{more: make(chan struct{})} }

// collect reads until the end.
func (o *output) collect(r io.Reader) {
	in := bufio.NewReader(r)
	for {
		text, err := in.ReadString('\n')
		o.mu.Lock()
		if text != "" {
			o.lines = append(o.lines, strings.TrimRight(text, "\r\n"))
		}
		o.over = err != nil
		close(o.more)
		o.more = make(chan struct{})
		o.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// mark returns the current end of the output.
func (o *output) mark() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.lines)
}

// since returns the lines after a mark.
func (o *output) since(mark int) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.lines[mark:])
}

// await waits for a matching line after a mark. It returns false at the end of the output or of the
// time limit.
func (o *output) await(mark int, within time.Duration, match func(string) bool) (string, bool) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		o.mu.Lock()
		for ; mark < len(o.lines); mark++ {
			if match(o.lines[mark]) {
				defer o.mu.Unlock()
				return o.lines[mark], true
			}
		}
		more, over := o.more, o.over
		o.mu.Unlock()
		if over {
			return "", false
		}
		select {
		case <-more:
		case <-timer.C:
			return "", false
		}
	}
}

// last returns the last n lines, shortened, without the lists that tests requested.
func (o *output) last(n int) string {
	lines := pick(o.since(0), func(l string) bool { return !strings.HasPrefix(l, "[") })
	var b strings.Builder
	for _, l := range lines[max(0, len(lines)-n):] {
		b.WriteString("  | " + l[:min(len(l), 300)] + "\n")
	}
	return b.String()
}

// Patterns that classify the shell's lines.
var (
	complaint = regexp.MustCompile(`^[^ ]*:\d+: `)
	usage     = regexp.MustCompile(`^usage: `)
	news      = regexp.MustCompile(
		`^((New connection on socket|Socket) \d+ |Interface \S+ is (up|down)$)`)
)

// Complaints returns the lines that report an error with its position in the script.
func Complaints(lines []string) []string { return pick(lines, complaint.MatchString) }

// answers returns the lines that answer a command.
func answers(lines []string) []string {
	return pick(lines, func(l string) bool {
		aside := complaint.MatchString(l) || usage.MatchString(l) || news.MatchString(l)
		return !aside && !isFence(l)
	})
}

func pick(lines []string, want func(string) bool) []string {
	var found []string
	for _, l := range lines {
		if want(l) {
			found = append(found, l)
		}
	}
	return found
}
