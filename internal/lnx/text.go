package lnx

// Text is a file that is split into lines of words, with its errors. Network plans use the same
// rules as .lnx files.
type Text struct {
	// Lines are the lines with at least one word.
	Lines  [][]Word
	report report
}

// Cut splits a file into words. Bytes that are not text and a file that is too long are errors.
func Cut(file string, text []byte) *Text {
	t := &Text{report: report{file: file}}
	lines, _, _ := t.report.lex(text)
	for _, l := range lines {
		t.Lines = append(t.Lines, l.words)
	}
	return t
}

// Source returns the line with the given number, counted from 1.
func (t *Text) Source(line int) string { return t.report.lines[line-1] }

// Wrong records an error at a word. The zero Word stands for the whole file.
func (t *Text) Wrong(at Word, msg, want string) { t.report.add(at.Pos, at.Text, msg, want) }

// Err returns all errors, sorted by position, or nil.
func (t *Text) Err() error { return t.report.sorted().Err() }
