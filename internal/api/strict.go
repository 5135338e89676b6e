package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
)

// repeated is the first name that an object of a document has twice, whatever its case; empty: each
// is there once. Readers take the first value or the last (RFC 8259 §4), and which was meant
// nobody can know. The document is one.
func repeated(document []byte) string {
	return repeatedIn(json.NewDecoder(bytes.NewReader(document)))
}

func repeatedIn(in *json.Decoder) (name string) {
	token, _ := in.Token()
	opened, ok := token.(json.Delim)
	if !ok {
		return ""
	}
	seen := map[string]bool{}
	for in.More() {
		if opened == '{' {
			token, _ = in.Token()
			key, _ := token.(string)
			if seen[strings.ToLower(key)] {
				return key
			}
			seen[strings.ToLower(key)] = true
		}
		if name = repeatedIn(in); name != "" {
			return name
		}
	}
	_, _ = in.Token() // what ends it
	return ""
}

// lacking names the field of a request of which an error complains that it is no address, when it
// was left out: its text would have Go's word for that.
func lacking(err error, request reflect.Value) error {
	if err == nil || !errors.Is(err, control.ErrUsage) {
		return err
	}
	for f, v := range request.Fields() {
		if examples[f.Type] != "" && v.IsZero() &&
			strings.Contains(err.Error(), fmt.Sprint(v.Interface())) {
			return fmt.Errorf("%w: %q is missing: must be %s", control.ErrUsage, jsonName(f),
				wanted(f.Type))
		}
	}
	return err
}
