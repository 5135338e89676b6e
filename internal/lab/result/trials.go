package result

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrFile is the error of a file with invalid content.
var ErrFile = errors.New("not a file of results")

// fixedColumns are the columns of trials.csv before the metrics. A run has a row for each flow, and
// then one for the whole run, with an empty flow. Without that row the run is incomplete.
var fixedColumns = []string{
	"experiment", "cell", "trial", "seed", "flow", "label", "finished", "note", "hash", "clock",
	"virtual_s",
}

// TrialsHeader returns the first line of trials.csv.
func TrialsHeader() []byte {
	columns := slices.Clone(fixedColumns)
	for _, d := range catalog {
		columns = append(columns, string(d.Name))
	}
	return append([]byte(strings.Join(columns, ",")), '\n')
}

// AppendTrial appends the rows of a run. experiment is the value of the column of that name.
func AppendTrial(dst []byte, experiment string, t *Trial) []byte {
	for i := range t.Flows {
		f := &t.Flows[i]
		dst = appendRow(dst, experiment, t, f)
	}
	return appendRow(dst, experiment, t, &Flow{Finished: t.Finished, Note: t.Note, Values: t.Whole})
}

func appendRow(dst []byte, experiment string, t *Trial, f *Flow) []byte {
	row := []string{
		experiment, strconv.Itoa(t.Cell), strconv.Itoa(t.Trial), strconv.FormatUint(t.Seed, 10),
		f.Name, f.Label, strconv.FormatBool(f.Finished), f.Note, fmt.Sprintf("%016x", t.Hash),
		cmp.Or(string(t.Clock), virtualWord), string(appendTime(nil, t.Virtual, time.Second)),
	}
	for _, d := range catalog {
		text := ""
		if v, ok := f.Values[d.Name]; ok {
			text = FormatNumber(v)
		}
		row = append(row, text)
	}
	return AppendRow(dst, row...)
}

// FormatNumber formats a number exactly. It returns an empty text if the number is not finite.
func FormatNumber(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// AppendRow appends a row of a CSV file, with quotes where necessary. A row stays one line.
func AppendRow(dst []byte, fields ...string) []byte {
	for _, s := range fields {
		s = strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
		if strings.ContainsAny(s, `",`) || s != strings.TrimLeft(s, " \t") {
			s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		}
		dst = append(append(dst, s...), ',')
	}
	dst[len(dst)-1] = '\n'
	return dst
}

// Trials is the content of a file of results.
type Trials struct {
	Runs []*Trial
	// Whole is the length of the file up to the end of its last complete run. Cut is the number of
	// lines of an incomplete run after that: its writer was stopped.
	Whole, Cut int
}

// ParseTrials parses a file of results, and skips an incomplete run at the end. experiment is what
// the column of that name must contain; path is for errors. Any other fault is an error with its
// line. check rejects runs that do not belong to the caller's experiment; it may be nil.
func ParseTrials(path string, text []byte, experiment string, check func(*Trial) error) (
	Trials, error,
) {
	var out Trials
	header := TrialsHeader()
	if len(text) == 0 || len(text) < len(header) && bytes.HasPrefix(header, text) {
		out.Cut = bytes.Count(text, []byte{'\n'}) + min(1, len(text))
		return out, nil // the writer was stopped at this point
	}
	if !bytes.HasPrefix(text, header) {
		return out, fmt.Errorf("%s:1: %w of this version: its columns differ", path, ErrFile)
	}
	out.Whole = len(header)
	var run *Trial
	for at, line := len(header), 2; at < len(text); line++ {
		end := bytes.IndexByte(text[at:], '\n') + 1
		if end == 0 {
			out.Cut++
			break
		}
		next, flow, err := parseRow(string(text[at:at+end]), experiment)
		if err == nil && run != nil && !sameRun(run, next) {
			err = fmt.Errorf("the run of trial %d of cell %d has no final row", run.Trial, run.Cell)
		}
		if err != nil {
			return out, fmt.Errorf("%s:%d: %w: %w", path, line, ErrFile, err)
		}
		if run == nil {
			run = next
		}
		at += end
		out.Cut++
		if flow.Name != "" {
			run.Flows = append(run.Flows, flow)
			continue
		}
		run.Finished, run.Note, run.Whole = flow.Finished, flow.Note, flow.Values
		if check != nil {
			err = check(run)
		}
		if err != nil {
			return out, fmt.Errorf("%s:%d: %w", path, line, err)
		}
		out.Runs = append(out.Runs, run)
		out.Whole, out.Cut, run = at, 0, nil
	}
	return out, nil
}

func sameRun(a, b *Trial) bool {
	return a.Cell == b.Cell && a.Trial == b.Trial && a.Seed == b.Seed && a.Hash == b.Hash &&
		a.Virtual == b.Virtual && a.Clock == b.Clock
}

func parseRow(line, experiment string) (*Trial, Flow, error) {
	r := csv.NewReader(strings.NewReader(line))
	fields, err := r.Read()
	if err != nil {
		return nil, Flow{}, err
	}
	if want := len(fixedColumns) + len(catalog); len(fields) != want {
		return nil, Flow{}, fmt.Errorf("%d fields: must be %d", len(fields), want)
	}
	if fields[0] != experiment {
		return nil, Flow{}, fmt.Errorf("the row belongs to experiment %s, not to %s: the file, "+
			"the settings, the seed or the version of the program differ", fields[0], experiment)
	}
	var t Trial
	var errs [7]error
	t.Cell, errs[0] = count(fields[1])
	t.Trial, errs[1] = count(fields[2])
	t.Seed, errs[2] = strconv.ParseUint(fields[3], 10, 64)
	f := Flow{Name: fields[4], Label: fields[5], Note: fields[7], Values: Values{}}
	f.Finished, errs[3] = strconv.ParseBool(fields[6])
	t.Hash, errs[4] = strconv.ParseUint(fields[8], 16, 64)
	t.Clock, errs[5] = parseClock(fields[9])
	t.Virtual, errs[6] = parseTime(fields[10], time.Second)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, Flow{}, err
	}
	for i, d := range catalog {
		field := fields[len(fixedColumns)+i]
		if field == "" {
			continue
		}
		v, err := strconv.ParseFloat(field, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, Flow{}, fmt.Errorf("%s: %q is not a number", d.Name, field)
		}
		f.Values[d.Name] = v
	}
	return &t, f, nil
}

const virtualWord = "virtual"

func parseClock(text string) (Clock, error) {
	c := Clock(text)
	switch {
	case text == virtualWord:
		return VirtualTime, nil
	case c.Real():
		return c, nil
	}
	return "", fmt.Errorf("clock %q: must be %s, %s or %s", text, virtualWord, RealTime, LateTime)
}

func count(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err
}
