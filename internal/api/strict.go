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

// repeated returns the first duplicate name in an object of a valid document, regardless of case,
// or "". Some parsers use the first value and some the last (RFC 8259 §4), so a duplicate is
// ambiguous.
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
	_, _ = in.Token() // skips the closing bracket
	return ""
}

// missingField names the missing field if an address is invalid because its field is missing. The
// error itself would print Go's zero address.
func missingField(err error, request reflect.Value) error {
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
