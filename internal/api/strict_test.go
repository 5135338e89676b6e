package api

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// RFC 8259 §4: the names in an object should be unique.
func TestDuplicateNames(t *testing.T) {
	for document, want := range map[string]string{
		`{}`: "", `[]`: "", `"a"`: "", `1`: "",
		`{"a":1,"b":2}`:                   "",
		`{"a":1,"a":2}`:                   "a",
		`{"a":1,"A":2}`:                   "A",
		`{"a":{"b":1},"c":{"b":1}}`:       "",
		`{"a":"b","b":"a","c":["a","a"]}`: "",
		`{"a":[{"b":1},{"b":[],"b":1}]}`:  "b",
		`{"a":{"x":[{}]},"b":1,"a":1}`:    "a",
	} {
		assert.Equal(t, want, repeated([]byte(document)), document)
	}
}
