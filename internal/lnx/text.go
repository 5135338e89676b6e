package lnx

// Text is a file cut into lines of words, as .lnx files are, with the mistakes that were found in
// it: the plans of networks are read by the same rules.
type Text struct {
	// Lines are those that say something: each has at least one word.
	Lines  [][]Word
	report report
}

// Cut cuts a file into words. Bytes that are not text, or too many, count as mistakes.
func Cut(file string, text []byte) *Text {
	t := &Text{report: report{file: file}}
	lines, _, _ := t.report.lex(text)
	for _, l := range lines {
		t.Lines = append(t.Lines, l.words)
	}
	return t
}

// Source is the line with that number, from 1.
func (t *Text) Source(line int) string { return t.report.lines[line-1] }

// Wrong records a mistake at a word; the zero Word stands for the whole file.
func (t *Text) Wrong(at Word, msg, want string) { t.report.add(at.Pos, at.Text, msg, want) }

// Err returns all mistakes in the order of their positions, or nil.
func (t *Text) Err() error { return t.report.sorted().Err() }
