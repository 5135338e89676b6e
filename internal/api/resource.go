package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// list returns what every node reports about itself.
func (n *nodes) list(w http.ResponseWriter, r *http.Request) error {
	nodes := []control.Node{}
	now := n.now.Load()
	for _, name := range now.names {
		ctx, cancel := context.WithTimeout(r.Context(), askTime)
		about, err := control.Ask(ctx, now.members[name].op, control.About{})
		cancel()
		if errors.Is(err, ErrGone) || errors.Is(err, context.DeadlineExceeded) {
			continue // this node has stopped or does not answer
		}
		if err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		nodes = append(nodes, about)
	}
	return answer(w, http.StatusOK, typeJSON, nodes)
}

func (n *nodes) about(w http.ResponseWriter, r *http.Request) error {
	return n.read(w, r, resources["about"])
}

// resource answers a read-only request. The query contains the fields of the request.
func (n *nodes) resource(w http.ResponseWriter, r *http.Request) error {
	k, ok := resources[r.PathValue("resource")]
	if !ok {
		return fmt.Errorf("%s: %w%s; /v1/openapi.json lists the paths", r.URL.Path,
			errNoSuchPath, diagnostic.DidYouMean(r.PathValue("resource"),
				slices.Sorted(maps.Keys(resources))))
	}
	return n.read(w, r, k)
}

func (n *nodes) read(w http.ResponseWriter, r *http.Request, k *control.Kind) error {
	m, err := n.of(r)
	if err != nil {
		return err
	}
	request := reflect.New(k.Request).Elem()
	if err := fromQuery(request, r.URL.RawQuery); err != nil {
		return err
	}
	ctx, end := m.withTimeout(r.Context())
	defer end()
	a, err := m.op.Do(ctx, request.Interface())
	if err != nil {
		return gone(ctx, err)
	}
	return answer(w, http.StatusOK, typeJSON, a)
}

// fromQuery sets a request's fields by their JSON names.
func fromQuery(request reflect.Value, raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return fmt.Errorf("query %q: %w: %w", raw, control.ErrUsage, err)
	}
	for name, values := range query {
		f, ok := fieldOf(request, name)
		if !ok {
			return fmt.Errorf("query: %w: unknown field %q%s", control.ErrUsage, name,
				choice(fieldNames(request.Type())))
		}
		text := values[len(values)-1]
		switch f.Kind() {
		case reflect.String:
			f.SetString(text)
		case reflect.Bool:
			on, err := strconv.ParseBool(text)
			if err != nil && text != "" {
				return fmt.Errorf("query: %w: %s=%s: must be true or false", control.ErrUsage, name,
					text)
			}
			f.SetBool(on || text == "")
		case reflect.Int, reflect.Int64:
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return fmt.Errorf("query: %w: %s=%s: must be a whole number", control.ErrUsage,
					name, text)
			}
			f.SetInt(n)
		case reflect.Uint64:
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return fmt.Errorf("query: %w: %s=%s: must be a whole number, 0 or more",
					control.ErrUsage, name, text)
			}
			f.SetUint(n)
		default:
			panic("BUG: api: a query for " + f.Type().String())
		}
	}
	return nil
}

// toQuery converts the nonzero fields of a request to a query for fromQuery.
func toQuery(request reflect.Value) url.Values {
	query := url.Values{}
	for i := range request.NumField() {
		name := jsonName(request.Type().Field(i))
		if f := request.Field(i); name != "" && !f.IsZero() {
			query.Set(name, fmt.Sprint(f.Interface()))
		}
	}
	return query
}

func fieldOf(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if jsonName(v.Type().Field(i)) == name {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// jsonName returns a field's JSON name; empty: none.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}

func fieldNames(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		if name := jsonName(f); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// choice lists the possible field names.
func choice(names []string) string {
	if len(names) == 0 {
		return "; there are no fields"
	}
	return "; the fields are " + strings.Join(names, ", ")
}

// InterfaceCounters are the counters of one interface, and of its impairments.
type InterfaceCounters struct {
	Iface       string                  `json:"iface"`
	In          control.Counters        `json:"in"`
	Out         control.Counters        `json:"out"`
	Device      *control.DeviceCounters `json:"device,omitempty"`
	Impairments []control.Impairment    `json:"impairments"`
}

// counters returns the packet counters of all interfaces.
func (n *nodes) counters(w http.ResponseWriter, r *http.Request) error {
	m, err := n.of(r)
	if err != nil {
		return err
	}
	ctx, end := m.withTimeout(r.Context())
	defer end()
	faces, err := control.Ask(ctx, m.op, control.Interfaces{})
	ways, worse := control.Ask(ctx, m.op, control.Impairments{})
	if err = errors.Join(err, worse); err != nil {
		return gone(ctx, err)
	}
	list := make([]InterfaceCounters, 0, len(faces))
	for _, f := range faces {
		c := InterfaceCounters{
			Iface: f.Name, In: f.In, Out: f.Out, Device: f.Device,
			Impairments: []control.Impairment{},
		}
		for _, i := range ways {
			if i.Iface == f.Name {
				c.Impairments = append(c.Impairments, i)
			}
		}
		list = append(list, c)
	}
	return answer(w, http.StatusOK, typeJSON, list)
}
