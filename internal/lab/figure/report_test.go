package figure

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	ci "github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

func reportOf(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.Write(&b))
	return b.String()
}

// requireWhole checks that a page is well-formed, refers to no other resource, and has no scripts.
func requireWhole(t *testing.T, page string) {
	t.Helper()
	void := map[string]bool{"meta": true, "br": true}
	var open []string
	in := html.NewTokenizer(strings.NewReader(page))
	for {
		kind := in.Next()
		if kind == html.ErrorToken {
			break
		}
		token := in.Token()
		switch kind {
		case html.StartTagToken:
			requireHarmless(t, token)
			if !void[token.Data] {
				open = append(open, token.Data)
			}
		case html.SelfClosingTagToken:
			requireHarmless(t, token)
		case html.ErrorToken, html.TextToken, html.CommentToken, html.DoctypeToken:
		case html.EndTagToken:
			require.NotEmpty(t, open, "</%s>", token.Data)
			require.Equal(t, open[len(open)-1], token.Data, "in order")
			open = open[:len(open)-1]
		}
	}
	require.Empty(t, open, "all elements are closed")
	style := page[strings.Index(page, "<style>"):strings.Index(page, "</style>")]
	require.NotContains(t, style, "url(")
	require.NotContains(t, style, "@import")
}

func requireHarmless(t *testing.T, token html.Token) {
	t.Helper()
	for _, bad := range []string{"script", "iframe", "link", "img", "object", "image", "use", "a"} {
		require.NotEqual(t, bad, token.Data)
	}
	for _, a := range token.Attr {
		require.False(t, strings.HasPrefix(a.Key, "on"), "%v", token)
		require.NotContains(t, []string{"src", "href"}, a.Key)
		require.NotContains(t, a.Val, "http:")
	}
}

func TestReportIsComplete(t *testing.T) {
	cells := arms(10, true)
	cells[2].Trials[3].Finished = false
	cells[2].Trials[3].Flows[0].Finished = false
	cells[2].Trials[3].Flows[0].Note = "the time limit of 60 s"
	delete(cells[2].Trials[3].Flows[0].Values, result.Completion)
	cells[1].Clock = "real, late"
	rec := synthesize(4*time.Second, 10, 60_000, "reno")
	r := &Report{
		Name: "arms", About: "five of them", Version: "v9", Seed: 42, Hash: "00ff",
		Command: "node lab run arms", Document: "name: arms\n", Notes: []string{"no jitter"},
		Cells: cells, Plots: SweepPlots(cells, nil),
		Sections: []Section{{Title: "trial 0", Notes: []string{"thinned"}, Plots: Plots(rec)}},
		Verdicts: []Verdict{
			{About: "utilisation", Expected: "0.99", Got: "0.98", Tolerance: "±1 %", Pass: true},
			{
				About: "packets", Expected: "58", Got: "68", Published: "58", Why: "one lucky draw",
				Source: "the sum of a geometric series", Because: "3 σ of 1000 runs",
			},
		},
	}
	page := reportOf(t, r)
	requireWhole(t, page)
	for _, want := range []string{
		"five of them", "v9", "42", "00ff", "node lab run arms", "name: arms", "no jitter",
		"100 runs in 10 cells", "9/10", "the time limit of 60 s", ">virtual<", ">real<", ">real, late<",
		"±1 %", "one lucky draw", "the sum of a geometric series", "3 σ of 1000 runs", "1 met, 1 not", "not met", "Figure 1.", "trial 0", "thinned",
		"median", "95 % interval", "every metric of every flow",
	} {
		assert.Contains(t, page, want)
	}
	before := 0
	for _, heading := range []string{"Results", "Comparison", "Expectations", "trial 0", "All num"} {
		at := strings.Index(page, "<h2>"+heading)
		assert.Greater(t, at, before, heading)
		before = at
	}
	assert.Equal(t, strings.Count(page, "<svg"), 2*strings.Count(page, "<figure>"))
	assert.Equal(t, len(r.Plots)+len(r.Sections[0].Plots), strings.Count(page, "<figure>"))
}

func TestUnfinishedFlowIsReportedOnce(t *testing.T) {
	tr := &result.Trial{Note: "b: out of time", Whole: result.Values{result.Utilization: 1}}
	tr.Flows = []result.Flow{
		{Name: "a", Finished: true, Values: result.Values{result.Completion: 3}},
		{Name: "b", Note: "out of time", Values: result.Values{result.Goodput: 7}},
	}
	page := reportOf(t, &Report{Name: "x", Cells: []Cell{{Trials: []*result.Trial{tr}}}})
	assert.Equal(t, 1, strings.Count(page, "Not finished: "))
	assert.Contains(t, page, "Not finished: b: out of time")
	assert.Contains(t, page, "not reached")
	assert.Contains(t, page, "0/1")
}

func TestReportOfManyRunsIsLimited(t *testing.T) {
	plots := Plots(synthesize(20*time.Second, 10, 60_000, "reno", "cubic"))
	r := &Report{Name: "many"}
	for range 60 {
		r.Sections = append(r.Sections, Section{Title: "run", Plots: plots})
	}
	page := reportOf(t, r)
	requireWhole(t, page)
	assert.Less(t, len(page), 9<<19)
	assert.Contains(t, page, "further runs, whose figures are only in files")
	assert.Positive(t, strings.Count(page, `<details class="part">`))
}

func TestEmptyReport(t *testing.T) {
	page := reportOf(t, &Report{Name: "nothing"})
	requireWhole(t, page)
	for _, heading := range []string{"Results", "Expectations", "Comparison", "All numbers"} {
		assert.NotContains(t, page, "<h2>"+heading)
	}
}

func TestReportHasMeansAndIntervals(t *testing.T) {
	c := Cell{}
	for i, v := range []float64{9.0e6, 9.2e6, 9.4e6} {
		c.Trials = append(c.Trials, &result.Trial{Trial: i, Finished: true, Flows: []result.Flow{{
			Name: "a", Label: "reno", Finished: true, Values: result.Values{result.Goodput: v},
		}}})
	}
	page := reportOf(t, &Report{Name: "x", Cells: []Cell{c}})
	// For three runs, t(2) is 4.303; the deviation is 0.2.
	assert.Contains(t, page, "9.20 <small>± 0.50</small>")
	assert.Contains(t, page, "3/3")
	assert.Contains(t, page, "background:"+PaintOf("reno").String())
}

func TestReportEscapesTexts(t *testing.T) {
	evil := `</style></svg><script>alert(1)</script><img src=x onerror=y> "'` + "\x00\u202e"
	tr := &result.Trial{Finished: false, Note: evil, Flows: []result.Flow{
		{Name: evil, Label: evil, Note: evil, Values: result.Values{result.Goodput: 1, result.RTTP95: 1}},
		{Name: "b", Label: evil, Note: evil, Values: result.Values{result.Goodput: 2, result.RTTP95: 2}},
	}}
	cells := []Cell{
		{Set: []Setting{{evil, evil}}, Trials: []*result.Trial{tr, tr, tr}},
		{Set: []Setting{{evil, "x"}}, Trials: []*result.Trial{tr}},
	}
	rec := synthesize(time.Second, 10, 60_000, evil)
	rec.Flows[0].Name, rec.Links[0].Name = evil, "down"
	rec.Marks = []result.Mark{{At: 1, Text: evil}}
	rec.Objects = []result.Object{{Flow: evil, Name: evil, End: 1, Done: true}}
	page := reportOf(t, &Report{
		Name: evil, About: evil, Version: evil, Hash: evil, Command: evil, Document: evil,
		Notes: []string{evil}, Cells: cells, Plots: SweepPlots(cells, nil),
		Verdicts: []Verdict{{evil, evil, evil, evil, evil, false, evil, evil, evil, evil}},
		Sections: []Section{{Title: evil, Notes: []string{evil}, Plots: Plots(rec)}},
	})
	requireWhole(t, page)
	assert.NotContains(t, page, "<script")
	assert.NotContains(t, page, "<img")
}

func FuzzReports(f *testing.F) {
	seeds := uint64(8)
	if ci.Long() {
		seeds = 40
	}
	for seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 2))
		cells := hostileCells(rng)
		page := reportOf(t, &Report{Name: "x", Cells: cells, Plots: SweepPlots(cells, nil)})
		requireWhole(t, page)
		assert.NotContains(t, page, "NaN")
		assert.NotContains(t, page, "Inf")
	})
}
