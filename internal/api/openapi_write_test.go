package api

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// TestOpenAPIIsFresh checks that the document matches the types and their comments.
func TestOpenAPIIsFresh(t *testing.T) {
	fresh, err := json.MarshalIndent(newWriter(t).document(), "", " ")
	require.NoError(t, err)
	fresh = append(fresh, '\n')
	if *update {
		require.NoError(t, os.WriteFile("openapi.json", fresh, 0o644))
		return
	}
	require.Equal(t, string(openAPIDocument), string(fresh),
		"openapi.json is not what the types say: go test ./internal/api -run OpenAPI -update")
}

// object is a JSON object.
type object = map[string]any

// openAPIWriter generates the document from the types of package control and of this package, and
// from the comments in their sources.
type openAPIWriter struct {
	comments map[string]string   // comments by the names Type and Type.Field
	values   map[string][]string // values of the types that are enumerations
	schemas  object
	requests map[reflect.Type]bool
}

func newWriter(t *testing.T) *openAPIWriter {
	t.Helper()
	w := &openAPIWriter{
		comments: map[string]string{}, values: map[string][]string{}, schemas: object{},
		requests: map[reflect.Type]bool{},
	}
	for _, pattern := range []string{
		"../icmp/pingstats.go", "../tcp/recovery/info.go", "../tcp/recovery/flight.go", "*.go",
		"../control/*.go",
	} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			require.NoError(t, err)
			for _, d := range file.Decls {
				if d, ok := d.(*ast.GenDecl); ok {
					w.read(d)
				}
			}
		}
	}
	for _, k := range control.Kinds() {
		w.requests[k.Request] = true
	}
	return w
}

// read stores the comments of a declaration.
func (w *openAPIWriter) read(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			name := spec.Name.Name
			if w.comments[name] = oneLine(spec.Doc); d.Lparen == token.NoPos {
				w.comments[name] = oneLine(d.Doc)
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range s.Fields.List {
				for _, n := range f.Names {
					w.comments[name+"."+n.Name] = oneLine(f.Doc, f.Comment)
				}
			}
		case *ast.ValueSpec:
			named, ok := spec.Type.(*ast.Ident)
			if !ok || d.Tok != token.CONST {
				continue
			}
			for _, v := range spec.Values {
				if text, ok := v.(*ast.BasicLit); ok && text.Kind == token.STRING {
					w.values[named.Name] = append(w.values[named.Name], strings.Trim(text.Value, `"`))
				}
			}
		}
	}
}

func oneLine(groups ...*ast.CommentGroup) string {
	var parts []string
	for _, g := range groups {
		if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
			parts = append(parts, text)
		}
	}
	return forClients.Replace(strings.Join(parts, " "))
}

// forClients replaces words about Go values, which clients of the API do not have.
var forClients = strings.NewReplacer(
	"the connection or ctx ends", "the connection ends or it is stopped",
	"ctx ends", "it is stopped",
	"its context ends", "it is stopped",
	"the context ends", "it is stopped",
	"the zero Addr: ", "empty: ",
	"the zero From: ", "`from` is empty: ",
	"; nil: ", "; absent: ",
	" is nil if", " is absent if",
	"the error is ErrMismatch", "the request fails",
	" fails with ErrStopped", " fails",
	"calls Each for", "sends an event for",
	"empty: Piece receives the packets", "empty: the stream has the packets",
	"to Packet, instead of the pcapng stream to Piece", "instead of the pcapng stream",
	"DefaultZone", fmt.Sprintf("%q", control.DefaultZone),
	"MaxNATSessions", fmt.Sprint(control.MaxNATSessions),
	"AllSockets", fmt.Sprint(control.AllSockets),
	" With errors.Is it equals its sentinel in package control.", "",
	"The zero RCPOptions follows", "Without fields it follows",
)

// capitalized matches a word that may be a Go name, and a verb that may follow it.
var capitalized = regexp.MustCompile(`\b[A-Z][A-Za-z0-9]*\b( (?:is|are|counts|count|has|includes|keeps|waits) )?`)

// withJSONNames replaces the Go names of a struct's fields in a comment by their JSON names. own is
// the name of the field with this comment. An abbreviation, or a word at the start of a sentence,
// is replaced only if it is certainly a name.
func withJSONNames(t reflect.Type, own, text string) string {
	var b strings.Builder
	end := 0
	for _, m := range capitalized.FindAllStringSubmatchIndex(text, -1) {
		name := strings.TrimSuffix(text[m[0]:m[1]], text[max(m[2], 0):max(m[3], 0)])
		f, ok := t.FieldByName(name)
		if !ok || jsonName(f) == "" {
			continue
		}
		before := strings.TrimRight(text[:m[0]], " ")
		starts := before == "" || strings.ContainsAny(before[len(before)-1:], ".:")
		first := before == "" && name == own && strings.HasSuffix(text, ".")
		humps := strings.IndexFunc(name[1:], unicode.IsUpper) >= 0
		acronym := len(name) > 1 && unicode.IsUpper(rune(name[1])) && name != "SHA256"
		if !first && (acronym || m[2] < 0 && starts && !humps) || strings.HasSuffix(before, "-") {
			continue
		}
		b.WriteString(text[end:m[0]] + "`" + jsonName(f) + "`")
		end = m[0] + len(name)
	}
	return b.String() + text[end:]
}

// described splits the comment of a request into a summary of what it does, and a description that
// does not begin with the Go name.
func (w *openAPIWriter) described(t reflect.Type) (summary, text string) {
	text = withJSONNames(t, "", strings.TrimPrefix(w.comments[t.Name()], t.Name()+" "))
	summary = text
	for _, end := range []string{". ", ": ", "; "} {
		summary, _, _ = strings.Cut(summary, end)
	}
	return strings.TrimSuffix(summary, "."), strings.ToUpper(text[:1]) + text[1:]
}

var plainTypes = map[reflect.Type]object{
	reflect.TypeFor[time.Duration](): {"type": "integer", "format": "int64"},
	reflect.TypeFor[time.Time]():     {"type": "string", "format": "date-time"},
	reflect.TypeFor[netip.Addr]():    {"type": "string", "pattern": `^(\d+\.\d+\.\d+\.\d+|[\da-f:.]+(%.+)?)?$`},
	reflect.TypeFor[netip.AddrPort](): {
		"type": "string", "pattern": `^((\d+\.\d+\.\d+\.\d+|\[[\da-f:.]+(%.+)?\]):\d+)?$`,
	},
	reflect.TypeFor[netip.Prefix](): {
		"type": "string", "pattern": `^((\d+\.\d+\.\d+\.\d+|[\da-f:.]+)/\d+)?$`,
	},
	reflect.TypeFor[[]byte](): {"type": []string{"string", "null"}, "contentEncoding": "base64"},
}

// schema returns the schema of a type.
func (w *openAPIWriter) schema(t reflect.Type) object {
	if plain, ok := plainTypes[t]; ok {
		return maps.Clone(plain)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.schema(t.Elem())
	case reflect.Struct:
		if _, ok := w.schemas[t.Name()]; !ok {
			w.schemas[t.Name()] = object{} // the type may contain itself
			w.schemas[t.Name()] = w.structure(t)
		}
		return object{"$ref": "#/components/schemas/" + t.Name()}
	case reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": w.schema(t.Elem())}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		s := object{"type": "string"}
		if values := w.values[t.Name()]; len(values) > 0 {
			s["enum"] = append(slices.Clone(values), "")
		}
		return s
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s := object{"type": "integer", "minimum": 0}
		if t.Bits() < 64 {
			s["maximum"] = 1<<t.Bits() - 1
		}
		return s
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	default:
		panic("a type that has no schema: " + t.String())
	}
}

// structure returns the schema of a struct. A request may omit every field and must not have
// others. An answer has all fields except those that are omitted when empty.
func (w *openAPIWriter) structure(t reflect.Type) object {
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "-" {
			continue
		}
		p := w.schema(f.Type)
		owner := t
		if len(f.Index) > 1 {
			owner = t.FieldByIndex(f.Index[:len(f.Index)-1]).Type
		}
		if text := w.comments[owner.Name()+"."+f.Name]; text != "" {
			p["description"] = withJSONNames(t, f.Name, text)
		}
		if f.Type == reflect.TypeFor[time.Duration]() {
			about := fmt.Sprint(p["description"], ", in nanoseconds")
			about = strings.Replace(about, "., in nano", ". In nano", 1)
			p["description"] = strings.TrimPrefix(about, "<nil>, ")
		}
		properties[name] = p
		if !strings.HasPrefix(options, "omit") {
			required = append(required, name)
		}
	}
	s := object{"type": "object", "properties": properties}
	if text := w.comments[t.Name()]; text != "" {
		s["description"] = withJSONNames(t, "", text)
	}
	switch {
	case w.requests[t]:
		s["additionalProperties"] = false
	case len(required) > 0:
		slices.Sort(required)
		s["required"] = required
	}
	return s
}

func content(as string, schema object) object {
	return object{as: object{"schema": schema}}
}

// answers returns the responses of an operation.
func (w *openAPIWriter) answers(status, about string, bodies object) object {
	ok := object{"description": about}
	if len(bodies) > 0 {
		ok["content"] = bodies
	}
	return object{status: ok, "default": object{"$ref": "#/components/responses/Problem"}}
}

// get returns the operation of a path that answers with JSON.
func (w *openAPIWriter) get(id, about string, answer any) object {
	return object{"get": object{
		"operationId": id, "summary": about,
		"responses": w.answers("200", about, content(typeJSON, w.schema(reflect.TypeOf(answer)))),
	}}
}

// document returns the whole document.
func (w *openAPIWriter) document() object {
	free := object{"type": "object"}
	paths := object{
		"/v1": w.get("index", "the API's start page", Index{}),
		"/v1/openapi.json": object{"get": object{
			"operationId": "openapi", "summary": "this document",
			"responses": w.answers("200", "this document", content(typeJSON, free)),
		}},
		"/v1/process":         w.get("process", "the program that answers", Process{}),
		"/v1/problems/{sort}": w.get("problem", "what a type of problem means", Sort{}),
		"/v1/nodes":           w.get("nodes", "the nodes", []control.Node{}),
		"/v1/nodes/{node}":    w.get("node", "a node's name and mode", control.Node{}),
		"/v1/nodes/{node}/counters": w.get("counters",
			"the packet counters of all interfaces", []InterfaceCounters{}),
		"/v1/nodes/{node}/commands": w.get("commands", "the commands of a node", []Command{}),
		"/v1/nodes/{node}/running":  w.get("running", "the running commands", []Running{}),
		"/v1/nodes/{node}/running/{id}": object{"delete": object{
			"operationId": "stop", "summary": "stop a running command: it answers with its result so far",
			"responses": w.answers("204", "the command was stopped", nil),
		}},
		"/v1/nodes/{node}/events":  w.events(),
		"/v1/nodes/{node}/capture": w.recording(),
		"/v1/network":              w.get("network", "how the nodes are connected", Shape{}),
		"/v1/stream":               w.pageStream(),
		"/v1/transfers":            w.transfers(),
	}
	for _, k := range control.Kinds() {
		w.kind(paths, &k)
	}
	for path, item := range paths {
		item := item.(object)
		if list := parameters(path); len(list) > 0 {
			item["parameters"] = list
		}
	}
	w.schema(reflect.TypeFor[Problem]())
	return object{
		"openapi": "3.1.1",
		"info": object{
			"title": "tidepool", "version": "1",
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "The API of tidepool nodes. A Unix socket needs no token; over TCP every " +
				"request needs one. Clients that stall are disconnected, after 10 s for an answer " +
				"and 10 minutes for a stream.",
		},
		"servers":  []object{{"url": "http://localhost"}},
		"security": []object{{}, {"token": []string{}}},
		"paths":    paths,
		"components": object{
			"schemas":         w.schemas,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
			"responses": object{"Problem": object{
				"description": "an error (RFC 9457)",
				"content": content(typeProblem,
					object{"$ref": "#/components/schemas/Problem"}),
			}},
		},
	}
}

// parameters returns the parameters in a path.
func parameters(path string) (list []object) {
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			schema := object{"type": "string"}
			if name = strings.TrimSuffix(name, "}"); name == "id" {
				schema = object{"type": "integer"}
			}
			list = append(list, object{
				"name": name, "in": "path", "required": true, "schema": schema,
			})
		}
	}
	return list
}

// events describes the stream of a node's events.
func (w *openAPIWriter) events() object {
	for _, e := range control.Events() {
		w.schema(reflect.TypeOf(e))
	}
	var lines []object
	for _, e := range control.Events() {
		lines = append(lines, w.line(e.Event(), w.schema(reflect.TypeOf(e))))
	}
	return object{"get": object{
		"operationId": "events", "summary": "a node's events from now on",
		"description": "Server-sent events: `event` is the kind, `data` its JSON. With Accept: " +
			typeLines + " they are lines of JSON.",
		"responses": w.answers("200", "events, until the connection ends", object{
			typeEvents: object{"schema": object{"type": "string"}},
			typeLines:  object{"schema": object{"oneOf": lines}},
		}),
	}}
}

// pageStream describes the path of the page's stream.
func (w *openAPIWriter) pageStream() object {
	kinds := map[string]any{
		"network": Shape{}, "life": NodeLife{}, "interfaces": NodeIfaces{},
		"sockets": NodeSockets{}, "routes": NodeRoutes{}, "neighbors": NodeNeighbors{},
		"rip": NodeRIP{}, "nats": NodeNATs{}, "sample": Look{}, "segments": Segments{}, "tick": Tick{},
	}
	var about []string
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t := reflect.TypeOf(kinds[name])
		w.schema(t)
		about = append(about, "`"+name+"` ("+t.Name()+")")
	}
	list := object{
		"type": "array", "items": object{"type": "string"}, "maxItems": mostFollowed,
	}
	return object{"get": object{
		"operationId": "stream", "summary": "the state of the network, and its changes",
		"description": "Server-sent events: " + strings.Join(about, ", ") + ", and `told`, an " +
			"event of a node with its name. A part of a node is sent when it has changed; the tick " +
			"after it has the time of the poll. A slow reader receives only the newest states.",
		"parameters": []object{
			{
				"name": "connection", "in": "query", "schema": list,
				"description": "NODE/SID: send the state of this connection twenty times a second",
			},
			{
				"name": "segments", "in": "query", "schema": list,
				"description": "NODE/SID: send the segments of this connection, or some of them if it is fast. " +
					"NODE/SID,NODE/SID: those of both ends, and those that nodes on the path dropped",
			},
		},
		"responses": w.answers("200", "events, until the connection ends", object{
			typeEvents: object{"schema": object{"type": "string"}},
		}),
	}}
}

// transfers describes the path of transfers between nodes.
func (w *openAPIWriter) transfers() object {
	w.requests[reflect.TypeFor[NetworkTransfer]()] = true
	progress := w.schema(reflect.TypeFor[control.Progress]())
	return object{"post": object{
		"operationId": "transfer", "summary": "transfer a file between nodes, and compare the result",
		"requestBody": object{"content": content(typeJSON, w.schema(reflect.TypeFor[NetworkTransfer]()))},
		"responses": w.answers("200", "the progress, and the result", object{
			typeLines: object{"schema": object{"oneOf": []object{
				w.line(eventBegun, w.schema(reflect.TypeFor[Running]())),
				w.line("sending", progress), w.line("receiving", progress),
				w.line(eventResult, w.schema(reflect.TypeFor[NetworkTransferred]())),
				w.line(eventError, w.schema(reflect.TypeFor[Problem]())),
			}}},
		}),
	}}
}

// line returns the schema of a line of a stream.
func (w *openAPIWriter) line(event string, data object) object {
	return object{
		"type": "object", "required": []string{"event", "data"},
		"properties": object{"event": object{"const": event}, "data": data},
	}
}

// kind adds the paths of a request.
func (w *openAPIWriter) kind(paths object, k *control.Kind) {
	answer := w.schema(k.Answer)
	summary, about := w.described(k.Request)
	nothing := k.Answer == reflect.TypeFor[control.Nothing]()
	lines := []object{
		w.line(eventBegun, w.schema(reflect.TypeFor[Running]())), w.line(eventResult, answer),
		w.line(eventError, w.schema(reflect.TypeFor[Problem]())),
	}
	for event, i := range callbacks(k.Request) {
		data := object{"type": "object"}
		if f := k.Request.Field(i).Type; f.NumIn() > 0 {
			data = w.schema(f.In(0))
		}
		lines = append(lines, w.line(event, data))
	}
	slices.SortFunc(lines, func(a, b object) int {
		return strings.Compare(fmt.Sprint(a["properties"]), fmt.Sprint(b["properties"]))
	})
	bodies := object{typeLines: object{"schema": object{"oneOf": lines}}}
	if !nothing {
		bodies[typeJSON] = object{"schema": answer}
	}
	responses := w.answers("200", "the answer; with Accept: "+typeLines+" also the events before it", bodies)
	if nothing {
		responses["204"] = object{"description": "success"}
	}
	if k.Stream {
		paths["/v1/nodes/{node}/streams/"+k.Name] = w.stream(k, lines)
	}
	paths["/v1/nodes/{node}/commands/"+k.Name] = object{"post": object{
		"operationId": "do-" + k.Name, "summary": summary, "description": about,
		"requestBody": object{"content": content(typeJSON, w.schema(k.Request))},
		"responses":   responses,
	}}
	if k.Resource == "" {
		return
	}
	item := w.get("get-"+k.Resource, summary, reflect.Zero(k.Answer).Interface())
	if query := w.query(k); len(query) > 0 {
		item["get"].(object)["parameters"] = query
	}
	paths["/v1/nodes/{node}/"+k.Resource] = item
}

// query returns the fields of a request as query parameters.
func (w *openAPIWriter) query(k *control.Kind) (query []object) {
	for f := range k.Request.Fields() {
		if jsonName(f) == "" {
			continue
		}
		if slices.Contains(k.Files, f.Name) {
			continue // a GET does not write files
		}
		query = append(query, object{
			"name": jsonName(f), "in": "query", "schema": w.schema(f.Type),
			"description": withJSONNames(k.Request, f.Name, w.comments[k.Request.Name()+"."+f.Name]),
		})
	}
	return query
}

// stream describes the path of a request whose answer is a stream.
func (w *openAPIWriter) stream(k *control.Kind, lines []object) object {
	summary, about := w.described(k.Request)
	return object{"get": object{
		"operationId": "stream-" + k.Name, "summary": summary,
		"description": about + " Server-sent events: `event` is the kind, `data` its JSON; the last " +
			"event is " + eventResult + " or " + eventError + ". With Accept: " + typeLines +
			" they are lines of JSON.",
		"parameters": w.query(k),
		"responses": w.answers("200", "events, until the connection ends", object{
			typeEvents: object{"schema": object{"type": "string"}},
			typeLines:  object{"schema": object{"oneOf": lines}},
		}),
	}}
}

// recording describes the path of a raw capture.
func (w *openAPIWriter) recording() object {
	k := kindsOf[reflect.TypeFor[control.Record]()]
	responses := w.answers("200", "a pcapng file, until the connection ends",
		object{typeCapture: object{"schema": object{"type": "string", "format": "binary"}}})
	responses["200"].(object)["headers"] = object{
		headerRunning: object{
			"description": "the number that stops the capture", "required": true,
			"schema": object{"type": "integer"},
		},
		"Trailer": object{
			"description": "the name of the trailer", "required": true,
			"schema": object{"const": headerResult},
		},
		headerResult: object{
			"description": "the result of the capture. This is a trailer, not a header (RFC 9110 " +
				"§6.5). Without it the file is incomplete",
			"content": content(typeJSON, w.schema(k.Answer)),
		},
	}
	return object{"get": object{
		"operationId": "get-capture", "summary": "live packets as a pcapng file",
		"description": "The capture ends when the client disconnects, after `count` packets, when the " +
			"node stops, or when the command is stopped: DELETE /v1/nodes/{node}/running/{id}, with " +
			"the number in the header " + headerRunning + ". The last blocks of the file give the " +
			"number of packets of each interface, and of those lost because the reader was too slow. " +
			"The file is sent in chunks (RFC 9112 §7.1). A complete answer ends with the last chunk " +
			"and the trailer " + headerResult + "; a failed one is cut off without them.",
		"parameters": w.query(k),
		"responses":  responses,
	}}
}
