package netem

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/spell"
)

// WordError is what is wrong with words that describe a link, and where.
type WordError struct {
	// Text is all of the words, At where the wrong one begins, in bytes, and Word that
	// one; empty: something is missing at the end.
	Text string
	At   int
	Word string
	// Msg says what is wrong, Want what would be right; it may be empty.
	Msg, Want string
}

// Error returns the message, then the words with carets under the wrong one.
func (e *WordError) Error() string {
	var b strings.Builder
	b.WriteString(e.Message())
	if e.Want != "" {
		b.WriteString("; want " + e.Want)
	}
	shown := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, e.Text)
	fmt.Fprintf(&b, "\n    %s\n    %s%s", shown,
		strings.Repeat(" ", utf8.RuneCountInString(e.Text[:e.At])),
		strings.Repeat("^", max(1, utf8.RuneCountInString(e.Word))))
	return b.String()
}

// Message says what is wrong with which word.
func (e *WordError) Message() string {
	if e.Word == "" {
		return e.Msg
	}
	return fmt.Sprintf("%q is %s", e.Word, e.Msg)
}

// Unwrap makes it an ErrConfig.
func (e *WordError) Unwrap() error { return ErrConfig }

// keyword is a word of the language and what reads the values behind it.
type keyword struct {
	name, usage string
	read        func(*reader)
}

// keywords are all of them. The table refers to readers that look into it: hence init.
var keywords []keyword

func init() {
	keywords = []keyword{
		{"delay", "delay TIME [JITTER [CORRELATION%]]", (*reader).delay},
		{"distribution", "distribution uniform or normal", (*reader).distribution},
		{"overtake", "overtake", func(r *reader) { r.cfg.Overtaking = true }},
		{"loss", "loss [random] SHARE% [CORRELATION%], loss gemodel P% [R% [1-H% [1-K%]]] " +
			"or loss every N", (*reader).loss},
		{"drop", "drop N,N,N-N", (*reader).drop},
		{"duplicate", "duplicate SHARE% [CORRELATION%]", func(r *reader) {
			r.cfg.Duplicate, r.cfg.Correlation.Duplicate = r.shares("duplicate SHARE%")
		}},
		{"reorder", "reorder SHARE% [CORRELATION%]", func(r *reader) {
			r.cfg.Reorder.Share, r.cfg.Correlation.Reorder = r.shares("reorder SHARE%")
		}},
		{"gap", "gap N", func(r *reader) { r.cfg.Reorder.Gap = r.count("gap N", maxGap) }},
		{"late", "late TIME", func(r *reader) { r.cfg.Reorder.Late = r.time("late TIME") }},
		{"corrupt", "corrupt SHARE% [CORRELATION%]", func(r *reader) {
			r.cfg.Corrupt.Share, r.cfg.Correlation.Corrupt = r.shares("corrupt SHARE%")
		}},
		{"bits", "bits N", func(r *reader) { r.cfg.Corrupt.Bits = r.count("bits N", maxBits) }},
		{"truncate", "truncate SHARE%", func(r *reader) {
			r.cfg.Truncate = r.share("truncate SHARE%")
		}},
		{"rate", "rate RATE [OVERHEAD]", (*reader).rate},
		{"limit", "limit PACKETS or limit BYTESkb", (*reader).limit},
		{"codel", "codel", func(r *reader) { r.codel = true }},
		{"target", "target TIME", func(r *reader) { r.queue.Target = r.time("target TIME") }},
		{"interval", "interval TIME", func(r *reader) {
			r.queue.Interval = r.time("interval TIME")
		}},
		{"ecn", "ecn", func(r *reader) { r.queue.ECN = true }},
		{"noecn", "noecn", func(*reader) {}},
		{"seed", "seed N", (*reader).seed},
	}
}

// Bounds of what can be asked for in words.
const (
	maxGap   = 1 << 20
	maxBits  = 1 << 10
	maxLimit = defaultMaxPackets
	// maxWords bounds a text.
	maxWords = 100
)

// shorts are other names of keywords.
var shorts = map[string]string{
	"dup": "duplicate", "latency": "delay", "dist": "distribution", "trunc": "truncate",
}

// Usage returns the form of every part of the language, in the order of String.
func Usage() []string {
	list := make([]string, len(keywords))
	for i, k := range keywords {
		list[i] = k.usage
	}
	return list
}

// Words returns the words that begin a part of the language.
func Words() []string {
	list := make([]string, len(keywords))
	for i, k := range keywords {
		list[i] = k.name
	}
	return list
}

// Parse reads what a link does in the words of tc-netem(8) and tc-codel(8), such as
// "delay 20ms 5ms loss 2% rate 10mbit limit 100 codel seed 7". What stands before a word
// "netem" is passed over, so that a whole command of tc may be pasted; "off" alone is a link
// that does nothing. Its errors are of type *WordError, or wrap ErrConfig where the parts are
// right and the whole is not. A rate without a limit gets UsualQueue.
func Parse(text string) (Config, error) {
	r := &reader{text: text, seen: map[string]word{}}
	r.split()
	if len(r.words) == 1 && (r.words[0].text == "off" || r.words[0].text == nothing) {
		return Config{}, nil
	}
	for r.err == nil && r.at < len(r.words) {
		r.part()
	}
	if r.err == nil {
		r.finish()
	}
	if r.err != nil {
		return Config{}, r.err
	}
	return r.cfg, nil
}

// word is a word of the text and where it begins.
type word struct {
	text string
	at   int
}

// reader is one run of Parse.
type reader struct {
	text  string
	words []word
	at    int // the next of words
	cfg   Config
	err   error
	seen  map[string]word // keywords, by name

	jitter time.Duration
	normal bool
	speed  BitsPerSecond
	codel  bool
	queue  CoDel // of which a queue that is not CoDel has the limits
}

func (r *reader) split() {
	for at := 0; at < len(r.text); {
		n := strings.IndexAny(r.text[at:], " \t")
		if n < 0 {
			n = len(r.text) - at
		}
		if n > 0 {
			r.words = append(r.words, word{r.text[at : at+n], at})
		}
		at += n + 1
	}
	for i, w := range r.words {
		if w.text == "netem" {
			r.at = i + 1
		}
	}
	if len(r.words)-r.at > maxWords {
		r.fail(r.words[maxWords], "one word too many", fmt.Sprintf("%d at most", maxWords))
	}
}

// fail records the first error.
func (r *reader) fail(w word, msg, want string) {
	if r.err == nil {
		r.err = &WordError{Text: r.text, At: w.at, Word: w.text, Msg: msg, Want: want}
	}
}

// part reads a keyword with its values.
func (r *reader) part() {
	w := r.words[r.at]
	r.at++
	name := strings.ToLower(w.text)
	if full, ok := shorts[name]; ok {
		name = full
	}
	for i := range keywords {
		if keywords[i].name != name {
			continue
		}
		if _, again := r.seen[name]; again {
			r.fail(w, "there already", "")
			return
		}
		r.seen[name] = w
		keywords[i].read(r)
		return
	}
	if name == "slot" || name == "state" {
		r.fail(w, "a part of netem that is not known here", "one of "+strings.Join(Words(), ", "))
		return
	}
	near, want := spell.DidYouMean(name, append(Words(), "dup")), ""
	if near == "" {
		want = "one of " + strings.Join(Words(), ", ")
	}
	r.fail(w, "no impairment"+near, want)
}

// finish puts together what several keywords said, and checks that it can be.
func (r *reader) finish() {
	c := &r.cfg
	_, reorder := r.seen["reorder"]
	_, gap := r.seen["gap"]
	if gap && !reorder {
		c.Reorder.Share = 1 // as the kernel has it
	}
	if c.Delay == 0 && c.Reorder.Share > 0 && c.Reorder.Late == 0 {
		c.Reorder.Late = Lateness
	}
	switch {
	case r.jitter > 0 && r.normal:
		c.Jitter = NormalJitter(r.jitter)
	case r.jitter > 0:
		c.Jitter = UniformJitter(r.jitter)
	}
	r.needs("distribution", r.jitter > 0, "a jitter: delay TIME JITTER")
	r.needs("overtake", r.jitter > 0, "a jitter: delay TIME JITTER")
	r.needs("late", c.Reorder.Share > 0, "reorder SHARE%")
	r.needs("bits", c.Corrupt.Share > 0, "corrupt SHARE%")
	r.needs("codel", r.speed > 0, "a rate: without one nothing waits")
	for _, name := range []string{"target", "interval", "ecn", "noecn"} {
		r.needs(name, r.codel, "codel")
	}
	if q := r.queue.withDefaults(); q.Target >= q.Interval {
		r.fail(r.seenLast("target", "interval"), "no good: the target would be "+q.Target.String()+
			" and the interval "+q.Interval.String(), "a target below the interval")
	}
	r.assemble()
	if whole := c.withDefaults(); r.err == nil {
		r.err = whole.validate()
	}
}

// seenLast is the last of the keywords that were said.
func (r *reader) seenLast(names ...string) (last word) {
	for _, name := range names {
		if w, said := r.seen[name]; said && w.at >= last.at {
			last = w
		}
	}
	return last
}

// assemble makes the queue.
func (r *reader) assemble() {
	c := &r.cfg
	tail := DropTail{Packets: r.queue.Packets, Bytes: r.queue.Bytes}
	switch {
	case r.speed == 0:
		c.MaxPackets, c.MaxBytes = tail.Packets, tail.Bytes
		return
	case r.codel:
		c.Queue = r.queue.withDefaults()
	case tail == DropTail{}:
		c.Queue = UsualQueue(r.speed)
	default:
		c.Queue = tail
	}
	c.Rate = r.speed
}

// needs refuses a keyword that means nothing without another.
func (r *reader) needs(name string, ok bool, want string) {
	if w, said := r.seen[name]; said && !ok {
		r.fail(w, "nothing by itself", want)
	}
}

// Lateness is up to how much later than their turn reordered packets arrive on a link
// without delay, where there is nobody to overtake.
const Lateness = time.Millisecond

// UsualQueue is the queue of a link of whose rate alone is spoken: it holds what passes in
// 200 ms, and 32 KiB however slow the link is.
func UsualQueue(rate BitsPerSecond) DropTail {
	const perSecond, least = int64(time.Second / (200 * time.Millisecond)), 32 << 10
	return DropTail{Bytes: int(max(int64(rate)/8/perSecond, least))}
}
