package netem

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// WordError is an error in the words that describe a link.
type WordError struct {
	// Text is the whole text. At is the offset of the wrong word in bytes. Word is that word; it is
	// empty if something is missing at the end.
	Text string
	At   int
	Word string
	// Msg says what is wrong. Want says what would be right; it may be empty.
	Msg, Want string
}

func (e *WordError) Error() string {
	text := e.Message()
	if e.Want != "" {
		text += "; expected " + e.Want
	}
	return text + diagnostic.Excerpt(e.Text, utf8.RuneCountInString(e.Text[:e.At])+1,
		utf8.RuneCountInString(e.Word))
}

// Message names the wrong word and the error.
func (e *WordError) Message() string {
	if e.Word == "" {
		return e.Msg
	}
	return fmt.Sprintf("%q is %s", e.Word, e.Msg)
}

func (e *WordError) Unwrap() error { return ErrConfig }

// keyword is a keyword of the language, with the function that parses its values.
type keyword struct {
	name, usage string
	read        func(*reader)
}

// keywords are all keywords. Their functions use this table, so init sets it.
var keywords []keyword

func init() {
	keywords = []keyword{
		{"delay", "delay TIME [JITTER [CORRELATION%]]", (*reader).delay},
		{"distribution", usageDistribution, (*reader).shape},
		{"overtake", "overtake", func(r *reader) { r.cfg.Overtaking = true }},
		{"loss", usageLoss, (*reader).loss},
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
		{"where", "where headers or payload", (*reader).where},
		{"truncate", "truncate SHARE%", func(r *reader) {
			r.cfg.Truncate = r.share("truncate SHARE%")
		}},
		{"police", usagePolice, (*reader).police},
		{"rate", usageRate, (*reader).rate},
		{"repeat", "repeat TIME", func(r *reader) { r.repeat = r.time("repeat TIME") }},
		{"slot", usageSlot, (*reader).slot},
		{"trace", usageTrace, (*reader).trace},
		{"limit", usageLimit, (*reader).limit},
	}
	keywords = append(keywords, queueKeywords()...)
	keywords = append(keywords, keyword{"seed", "seed N", (*reader).seed})
}

// These are limits of values in words, and a message.
const (
	maxGap   = 1 << 20
	maxBits  = 1 << 10
	maxLimit = defaultMaxPackets
	// maxWords limits the number of words.
	maxWords = 100
	// Twice is the Msg of a keyword that was given before.
	Twice = "given twice"
)

var shorts = map[string]string{
	"dup": "duplicate", "latency": "delay", "dist": "distribution", "trunc": "truncate",
}

// Words returns the keywords.
func Words() []string {
	list := make([]string, len(keywords))
	for i, k := range keywords {
		list[i] = k.name
	}
	return list
}

// Parse parses a description of a link in the words of tc-netem(8), tc-codel(8) and similar pages,
// such as "delay 20ms 5ms loss 2% rate 10mbit limit 100 codel seed 7". It skips everything up to a
// word "netem", so that a whole tc command can be pasted; "off" alone is a link that forwards
// packets unchanged. Errors are of type *WordError, or wrap ErrConfig if the parts do not fit
// together. A rate without a limit gets UsualQueue.
func Parse(text string) (Config, error) { return ParseWith(text, nil) }

// Reader reads a file that words name. It fails if the file has more than most bytes.
type Reader func(name string, most int64) ([]byte, error)

// ParseWith is like Parse, with a function that reads the files of distributions and traces that
// the words name. If the function is nil, such names are errors.
func ParseWith(text string, read Reader) (Config, error) {
	r := &reader{text: text, seen: map[string]word{}, read: read}
	r.split()
	if len(r.words) == 1 && (r.words[0].text == "off" || r.words[0].text == nothing) {
		return Config{}, nil
	}
	for r.err == nil && r.at < len(r.words) {
		r.parsePart()
	}
	if r.err == nil {
		r.finish()
	}
	if r.err != nil {
		return Config{}, r.err
	}
	return r.cfg, nil
}

// word is a word of the text, with its position.
type word struct {
	text string
	at   int
}

// reader is the state of one run of Parse.
type reader struct {
	text  string
	words []word
	at    int // index of the next word
	cfg   Config
	err   error
	seen  map[string]word // the keywords so far, by name
	read  Reader

	jitter RandomJitter
	steps  []Step        // steps of the rate; a constant rate has one
	repeat time.Duration // period of the steps
	cells  Cells         // cells of the rate
	slots  *Slots
	traced *Opportunities
	queue  queueWords
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
		r.fail(r.words[maxWords], "one argument more than allowed", fmt.Sprintf("%d at most",
			maxWords))
	}
}

func (r *reader) fail(w word, msg, want string) {
	if r.err == nil {
		r.err = &WordError{Text: r.text, At: w.at, Word: w.text, Msg: msg, Want: want}
	}
}

func (r *reader) parsePart() {
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
			r.fail(w, Twice, "")
			return
		}
		r.seen[name] = w
		keywords[i].read(r)
		return
	}
	if near := diagnostic.DidYouMean(name, append(Words(), "dup")); near != "" {
		r.fail(w, "not an impairment"+near, "")
		return
	}
	r.fail(w, "not an impairment", "a keyword such as delay, loss, rate, duplicate or codel")
}
