package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/examine"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"bad":     func(v examine.Verdict) bool { return v != examine.Pass && v != examine.Skipped },
	"reason":  reason,
	"skipped": skipped,
	"ladder":  ladder,
}).Parse(pageText))

type group struct {
	Area    string
	Results []*examine.Result
	Passed  int
	Bad     int
}

// Page writes a static page without scripts. Command is the command line without --only. With
// captures, the page links to the files of Captures, which must be in the page's folder.
func Page(w io.Writer, r *examine.Report, command []string, captures bool) error {
	var groups []*group
	for i := range r.Results {
		x := &r.Results[i]
		at := slices.IndexFunc(groups, func(g *group) bool { return g.Area == x.Check.Area })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &group{Area: x.Check.Area})
		}
		g := groups[at]
		g.Results = append(g.Results, x)
		switch x.Verdict {
		case examine.Pass:
			g.Passed++
		case examine.Skipped:
		default:
			g.Bad++
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return strings.Compare(a.Area, b.Area) })
	return page.Execute(w, map[string]any{
		"Report": r, "Groups": groups, "Summary": Summary(r), "Causes": Causes(r),
		"Rerun": func(x *examine.Result) string { return Rerun(command, x.Check.Name) },
		"Capture": func(x *examine.Result) string {
			if !captures {
				return ""
			}
			return CaptureName(x.Check.Name)
		},
		"Share": func(v int) string { return fmt.Sprintf("%.1f", percent(v, len(r.Results))) },
		"Pass":  r.Count(examine.Pass), "Skip": r.Count(examine.Skipped),
	})
}

func percent(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) * 100 / float64(of)
}

// Geometry of a ladder, in pixels.
const (
	ladderWidth  = 860
	ladderLeft   = 110
	ladderRight  = 760
	rowHeight    = 30
	ladderTop    = 34
	maxRungs     = 60
	ladderMargin = 14
)

// ladder draws the packets of a run: the examiner on the left, the subject on the right.
func ladder(x *examine.Result) template.HTML {
	events := x.Ladder
	var b strings.Builder
	cut := max(0, len(events)-maxRungs)
	events = events[cut:]
	height := ladderTop + len(events)*rowHeight + ladderMargin
	fmt.Fprintf(&b, `<svg class="ladder" viewBox="0 0 %d %d" width="%d" role="img" `+
		`aria-label="packets of the check">`, ladderWidth, height, ladderWidth)
	for _, end := range []struct {
		x    int
		name string
	}{{ladderLeft, "examiner"}, {ladderRight, "subject"}} {
		fmt.Fprintf(&b, `<text x="%d" y="16" class="end">%s</text>`, end.x, end.name)
		fmt.Fprintf(&b, `<line x1="%d" y1="24" x2="%d" y2="%d" class="rail"/>`,
			end.x, end.x, height)
	}
	if cut > 0 {
		fmt.Fprintf(&b, `<text x="%d" y="16" class="note">%d earlier events not shown</text>`,
			(ladderLeft+ladderRight)/2, cut)
	}
	for i := range events {
		rungAt(&b, &events[i], ladderTop+i*rowHeight+rowHeight/2)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // texts are escaped in rungAt
}

func rungAt(b *strings.Builder, e *examine.Event, y int) {
	const drop, head = 8, 8
	text := template.HTMLEscapeString(e.Text)
	fmt.Fprintf(b, `<text x="%d" y="%d" class="time">%.1f ms</text>`, ladderLeft-12, y+4,
		e.At.Seconds()*1e3)
	if e.Kind == examine.EventCommand {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="12" height="12" class="typed"/>`+
			`<text x="%d" y="%d" class="typed">user: %s</text>`,
			ladderRight-6, y-6, ladderRight-14, y+4, text)
		return
	}
	from, to := ladderLeft, ladderRight
	if e.Kind != examine.EventSent {
		from, to = to, from
	}
	tip := to - head
	if to < from {
		tip = to + head
	}
	fmt.Fprintf(b, `<g class="%s"><line x1="%d" y1="%d" x2="%d" y2="%d"/>`+
		`<path d="M%d %d L%d %d L%d %d Z"/>`, e.Kind, from, y-drop+6, tip, y+drop-2,
		to, y+drop-2, tip, y+drop-6, tip, y+drop+2)
	note := ""
	switch {
	case e.Kind == examine.EventExpected:
		note = " — expected, did not come"
	case e.Note != "":
		note = " — " + template.HTMLEscapeString(e.Note)
	case e.Kind == examine.EventUnwanted:
		note = " — must not come"
	}
	fmt.Fprintf(b, `<text x="%d" y="%d">%s%s</text></g>`,
		(ladderLeft+ladderRight)/2, y-5, text, note)
}
