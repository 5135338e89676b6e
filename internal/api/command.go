package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
)

// Every streaming command sends these events in addition to its own.
const (
	eventBegun  = "running" // event with the number that stops the command
	eventResult = "result"
	eventError  = "error"
)

// Command describes a command of a node.
type Command struct {
	Name string `json:"name"`
	Path string `json:"path"`
	// Fields are the names of the request's JSON fields.
	Fields []string `json:"fields"`
	// Events are the names of the stream's events before the result.
	Events []string `json:"events"`
}

func (js *jobs) commands(w http.ResponseWriter, r *http.Request) error {
	if _, err := js.nodes.of(r); err != nil {
		return err
	}
	list := []Command{}
	for _, k := range control.Kinds() {
		c := Command{
			Name: k.Name, Path: r.URL.Path + "/" + k.Name,
			Fields: append([]string{}, fieldNames(k.Request)...),
			Events: slices.AppendSeq([]string{}, maps.Keys(callbacks(k.Request))),
		}
		slices.Sort(c.Events)
		list = append(list, c)
	}
	return answer(w, http.StatusOK, typeJSON, list)
}

// command executes a command. With Accept: application/x-ndjson the answer is a stream of lines:
// the number of the command, its events, and the result or the error.
func (js *jobs) command(w http.ResponseWriter, r *http.Request) error {
	m, err := js.nodes.of(r)
	if err != nil {
		return err
	}
	k, ok := kinds[r.PathValue("command")]
	if !ok {
		name := r.PathValue("command")
		return fmt.Errorf("%q: %w: no such command%s; /v1/openapi.json lists them", name,
			errNoSuchPath, diagnostic.DidYouMean(name, slices.Sorted(maps.Keys(kinds))))
	}
	request := reflect.New(k.Request).Elem()
	if err := body(w, r, k.Name, request); err != nil {
		return err
	}
	if err := checkFiles(k, request); err != nil {
		return err
	}
	ctx, cancel := m.within(files.In(r.Context(), js.files))
	defer cancel()
	if !lasts(k) {
		var end context.CancelFunc
		ctx, end = m.withTimeout(ctx)
		defer end()
	}
	job, err := js.add(r.PathValue("node"), k.Name, cancel)
	if err != nil {
		return err
	}
	if !wantsLines(r) {
		a, err := execute(ctx, m.op, request)
		js.remove(job)
		switch {
		case err != nil:
			return gone(ctx, err)
		case k.Answer == reflect.TypeFor[control.Nothing]():
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return answer(w, http.StatusOK, typeJSON, a)
	}
	out := js.begin(w, typeLines, job, cancel)
	defer out.end()
	out.tell(eventBegun, job.Running)
	bind(request, out.tell)
	a, err := execute(ctx, m.op, request)
	js.remove(job) // takes the command off the list before the client reads the last line
	out.writeResult(a, gone(ctx, err))
	return nil
}

// checkFiles validates the file names of a request.
func checkFiles(k *control.Kind, request reflect.Value) error {
	for _, name := range fileNames(k, request) {
		if err := files.CheckName(*name); err != nil && *name != "" {
			return control.Also(fmt.Errorf("%s: %w", k.Name, err), control.ErrUsage)
		}
	}
	return nil
}

func fileNames(k *control.Kind, request reflect.Value) (list []*string) {
	for _, name := range k.Files {
		switch f := request.FieldByName(name).Addr().Interface().(type) {
		case *string:
			list = append(list, f)
		case *[]string:
			*f = slices.Clone(*f) // the caller may share the slice
			for i := range *f {
				list = append(list, &(*f)[i])
			}
		}
	}
	return list
}

// execute is like Do, but converts a panic to an error, so that the node continues.
func execute(ctx context.Context, op control.Operator, request reflect.Value) (a any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w (the node continues): %v", errInside, p)
		}
	}()
	a, err = op.Do(ctx, request.Interface())
	return a, missingField(err, request)
}

// wantsLines reports whether the client accepts lines of JSON.
func wantsLines(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), typeLines)
}

func body(w http.ResponseWriter, r *http.Request, name string, request reflect.Value) error {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(bodyTime)) // writers in tests have no deadlines
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		// After an error the deadline stays, because net/http reads and discards the rest of the
		// body and must not wait for it.
		_ = c.SetReadDeadline(time.Time{})
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("%s: %w: must be at most %d bytes", name, errTooLarge, maxBody)
	}
	if err != nil {
		return fmt.Errorf("%s: reading the request: %w: %w", name, control.ErrUsage, err)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	err = in.Decode(request.Addr().Interface())
	if err == nil {
		if _, more := in.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("unexpected data after the object")
		} else if name := repeated(text); name != "" {
			err = fmt.Errorf("duplicate key %q", name)
		} else if string(bytes.TrimSpace(text)) == "null" {
			err = errors.New("the request cannot be null: must be an object" +
				choice(fieldNames(request.Type())))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, control.ErrUsage, inJSON(err, text, request.Type()))
	}
	return nil
}

// inJSON describes an error in a request's JSON without naming Go types.
func inJSON(err error, document []byte, request reflect.Type) string {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("invalid JSON: it ends at byte %d, within an object, a list or a text",
			len(document))
	}
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if bad.Field == "" {
			return fmt.Sprintf("the request cannot be %s: must be %s%s", one(bad.Value),
				wanted(bad.Type), choice(fieldNames(request)))
		}
		return fmt.Sprintf("%q cannot be %s: must be %s", bad.Field, one(bad.Value),
			wanted(bad.Type))
	}
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("invalid JSON at byte %d: %s", bad.Offset, bad.Error())
	}
	if name, value, t := invalidField(document, request); name != "" {
		return fmt.Sprintf("%q cannot be %s: must be %s", name, value, wanted(t))
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if strings.HasPrefix(text, "unknown field") {
		text += choice(fieldNames(request))
	}
	return text
}

// one returns a JSON type's name with its article, or the value of a number.
func one(sort string) string {
	switch sort {
	case "array":
		return "a list"
	case "object":
		return "an object"
	}
	return strings.Replace("a "+sort, "a number ", "", 1)
}

// invalidField finds the field whose text cannot be parsed as its type, such as an invalid address.
// It returns the field's name, text and type. If there is no such field, the name is empty. The
// error of the parser does not name the field.
func invalidField(document []byte, request reflect.Type) (name, value string, t reflect.Type) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(document, &fields) != nil {
		return "", "", nil
	}
	for f := range request.Fields() {
		text, ok := fields[jsonName(f)]
		if !ok || examples[f.Type] == "" {
			continue
		}
		if json.Unmarshal(text, reflect.New(f.Type).Interface()) != nil {
			return jsonName(f), string(text), f.Type
		}
	}
	return "", "", nil
}

// examples describes types whose JSON is a string with a syntax.
var examples = map[reflect.Type]string{
	reflect.TypeFor[netip.Addr]():     "an address such as 10.0.0.2 or 2001:db8::2",
	reflect.TypeFor[netip.AddrPort](): "an address and port such as 10.0.0.2:80 or [fd00::2]:80",
	reflect.TypeFor[netip.Prefix]():   "a network such as 10.0.0.0/24 or 2001:db8::/64",
}

// wanted describes the JSON values of a type.
func wanted(t reflect.Type) string {
	if example := examples[t]; example != "" {
		return example
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		most := uint64(1)<<(t.Bits()-1)<<1 - 1
		return "a whole number from 0 to " + strconv.FormatUint(most, 10)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a text in base 64"
		}
		return "a list"
	default:
		return "an object"
	}
}
