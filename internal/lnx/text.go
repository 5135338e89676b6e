package lnx

// Text is a file cut into lines of words, with the errors found in it. Plans of networks use the
// same rules as .lnx files.
type Text struct {
	// Lines are the lines with at least one word.
	Lines  [][]Word
	report report
}

// Cut cuts a file into words. Bytes that are not text are errors, and so is a file that is too
// long.
func Cut(file string, text []byte) *Text {
	t := &Text{report: report{file: file}}
	lines, _, _ := t.report.lex(text)
	for _, l := range lines {
		t.Lines = append(t.Lines, l.words)
	}
	return t
}

// Source returns the line with that number, from 1.
func (t *Text) Source(line int) string { return t.report.lines[line-1] }

// Wrong records an error at a word; the zero Word stands for the whole file.
func (t *Text) Wrong(at Word, msg, want string) { t.report.add(at.Pos, at.Text, msg, want) }

// Err returns all errors, sorted by position, or nil.
func (t *Text) Err() error { return t.report.sorted().Err() }
