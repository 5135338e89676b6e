package api

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
)

// kinds and kindsOf contain the requests by name and by type. resources contains the read-only
// requests by resource.
var (
	kinds     = map[string]*control.Kind{}
	kindsOf   = map[reflect.Type]*control.Kind{}
	resources = map[string]*control.Kind{}
	eventsOf  = map[string]reflect.Type{}
)

func init() {
	for _, k := range control.Kinds() {
		kinds[k.Name], kindsOf[k.Request] = &k, &k
		if k.Resource != "" {
			resources[k.Resource] = &k
		}
	}
	for _, e := range control.Events() {
		eventsOf[e.Event()] = reflect.TypeOf(e)
	}
}

// Some requests have functions as fields, which the node calls while it executes the request. In
// HTTP each call is an event with the name of the field: Progress becomes "progress".

// streams reports whether a request has functions.
func streams(k *control.Kind) bool {
	for f := range callbacks(k.Request) {
		return f != ""
	}
	return false
}

// lasting lists the requests that have no functions, but wait for a peer or a disk.
var lasting = []reflect.Type{
	reflect.TypeFor[control.Connect](), reflect.TypeFor[control.Write](),
	reflect.TypeFor[control.Read](), reflect.TypeFor[control.RCPCount](),
	reflect.TypeFor[control.RDTServe](), reflect.TypeFor[control.RDTList](),
	reflect.TypeFor[control.Reload](),
}

// lasts reports whether a request may take long. A node answers all other requests at once.
func lasts(k *control.Kind) bool { return streams(k) || slices.Contains(lasting, k.Request) }

// callbacks returns the events of a request with the indexes of their fields.
func callbacks(request reflect.Type) map[string]int {
	found := map[string]int{}
	for i := range request.NumField() {
		if f := request.Field(i); f.Type.Kind() == reflect.Func {
			found[strings.ToLower(f.Name)] = i
		}
	}
	return found
}

// bind sets every function of a request to one that sends an event.
func bind(request reflect.Value, tell func(event string, data any)) {
	for event, i := range callbacks(request.Type()) {
		f := request.Field(i)
		f.Set(reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
			var data any = struct{}{}
			if len(args) > 0 {
				data = args[0].Interface()
			}
			tell(event, data)
			return nil
		}))
	}
}

// relay calls the function of a request for an event, if the function is set. It returns false if
// the request has no such function.
func relay(request reflect.Value, event string, data json.RawMessage) (bool, error) {
	i, ok := callbacks(request.Type())[event]
	if !ok {
		return false, nil
	}
	f := request.Field(i)
	if f.IsNil() {
		return true, nil
	}
	var args []reflect.Value
	if f.Type().NumIn() > 0 {
		arg := reflect.New(f.Type().In(0))
		if err := json.Unmarshal(data, arg.Interface()); err != nil {
			return true, err
		}
		args = append(args, arg.Elem())
	}
	f.Call(args)
	return true, nil
}
