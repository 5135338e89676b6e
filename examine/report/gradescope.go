package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/tidepool-net/tidepool/examine"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
)

// Rubric assigns points to checks.
type Rubric struct {
	Parts []Part `yaml:"parts"`
}

// Part is an entry of a rubric: some checks, and the points for all of them together.
type Part struct {
	Name   string  `yaml:"name"`
	Points float64 `yaml:"points"`
	// Checks are names, or patterns such as tcp/fin-*.
	Checks []string `yaml:"checks"`
	// All gives the points only if all checks pass. If it is not set, each check that passes earns
	// its share.
	All bool `yaml:"all"`
	// Hidden hides the part from students.
	Hidden bool `yaml:"hidden"`
}

// ReadRubric reads a rubric in YAML. Each pattern must match a check.
func ReadRubric(file string, checks []*examine.Check) (*Rubric, error) {
	text, err := files.Text(file, files.MaxText)
	if err != nil {
		return nil, err
	}
	var r Rubric
	if err := yaml.UnmarshalWithOptions(text, &r, yaml.Strict()); err != nil {
		return nil, examine.YAMLError(file, text, err)
	}
	if len(r.Parts) == 0 {
		return nil, &diagnostic.Error{
			File: file, Msg: "the rubric has no parts",
			Want: "parts: with name, points and checks of each",
		}
	}
	for i := range r.Parts {
		if err := r.Parts[i].check(file, text, checks); err != nil {
			return nil, err
		}
	}
	return &r, nil
}

func (p *Part) check(file string, text []byte, checks []*examine.Check) error {
	fail := func(word, msg, want string) error {
		e := &diagnostic.Error{File: file, Text: word, Msg: msg, Want: want}
		for i, source := range strings.Split(string(text), "\n") {
			if at := strings.Index(source, word); at >= 0 && word != "" {
				e.Line, e.Col, e.Source = i+1, len([]rune(source[:at]))+1, source
				break
			}
		}
		return e
	}
	if p.Name == "" {
		return fail("", "a part has no name", "name: TEXT")
	}
	if p.Points < 0 || len(p.Checks) == 0 {
		return fail(p.Name, "the part needs points of 0 or more, and checks",
			"points: 10, checks: [tcp/fin-*]")
	}
	var names []string
	for _, c := range checks {
		names = append(names, c.Name)
	}
	for _, pattern := range p.Checks {
		if _, err := path.Match(pattern, ""); err != nil {
			return fail(pattern, "malformed pattern", "a name or a pattern such as tcp/fin-*")
		}
		found := false
		for _, name := range names {
			found = found || Matches(pattern, name)
		}
		if !found {
			return fail(pattern, "no check has this name"+diagnostic.DidYouMean(pattern, names),
				"a name or a pattern such as tcp/fin-*; see examine --list")
		}
	}
	return nil
}

// Matches reports whether a pattern matches a check: its whole name, or one of the folders in the
// name.
func Matches(pattern, name string) bool {
	for {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
		at := strings.LastIndexByte(name, '/')
		if at < 0 {
			return false
		}
		name = name[:at]
	}
}

type gradescope struct {
	Score  float64          `json:"score"`
	Time   float64          `json:"execution_time"`
	Output string           `json:"output"`
	Tests  []gradescopeTest `json:"tests"`
}

type gradescopeTest struct {
	Name       string  `json:"name"`
	Score      float64 `json:"score"`
	Max        float64 `json:"max_score"`
	Status     string  `json:"status"`
	Output     string  `json:"output"`
	Visibility string  `json:"visibility"`
}

// Gradescope writes results.json. Without a rubric, each check is worth one point. Skipped checks
// do not count in their part.
func Gradescope(w io.Writer, r *examine.Report, rubric *Rubric) error {
	if rubric == nil {
		rubric = &Rubric{}
		for i := range r.Results {
			rubric.Parts = append(rubric.Parts, Part{
				Name: r.Results[i].Check.Name, Points: 1,
				Checks: []string{r.Results[i].Check.Name},
			})
		}
	}
	out := gradescope{Time: math.Round(r.Took.Seconds()), Output: Summary(r)}
	for _, p := range rubric.Parts {
		t := p.grade(r)
		out.Score += t.Score
		out.Tests = append(out.Tests, t)
	}
	out.Score = math.Round(out.Score*100) / 100
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(out)
}

func (p *Part) grade(r *examine.Report) gradescopeTest {
	t := gradescopeTest{Name: p.Name, Max: p.Points, Status: "passed", Visibility: "visible"}
	if p.Hidden {
		t.Visibility = "hidden"
	}
	passed, counted := 0, 0
	var text strings.Builder
	for i := range r.Results {
		x := &r.Results[i]
		if !p.contains(x.Check.Name) {
			continue
		}
		text.WriteString(Line(x))
		if x.Verdict == examine.Skipped {
			continue
		}
		if counted++; x.Verdict == examine.Pass {
			passed++
		}
	}
	share := 0.0
	if counted > 0 {
		share = float64(passed) / float64(counted)
	}
	if share < 1 {
		if t.Status = "failed"; p.All {
			share = 0
		}
	}
	t.Score = math.Round(share*p.Points*100) / 100
	t.Output = fmt.Sprintf("%d of %d checks passed\n%s", passed, counted, text.String())
	return t
}

func (p *Part) contains(name string) bool {
	for _, pattern := range p.Checks {
		if Matches(pattern, name) {
			return true
		}
	}
	return false
}
