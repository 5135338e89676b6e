package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// described is the OpenAPI document of the server. Its schemas validate the answers in tests.
type described struct {
	compiler *jsonschema.Compiler
	paths    map[string]map[string]json.RawMessage
	asked    map[string]bool // METHOD path of each request so far
}

func describe(t *testing.T, document []byte) *described {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	require.NoError(t, err)
	d := &described{compiler: jsonschema.NewCompiler(), asked: map[string]bool{}}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	require.NoError(t, d.compiler.AddResource("openapi.json", parsed))
	var whole struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(document, &whole))
	d.paths = whole.Paths
	return d
}

// template returns the path in the document that matches a real path.
func (d *described) template(t *testing.T, path string) string {
	t.Helper()
	path, _, _ = strings.Cut(path, "?")
	if _, ok := d.paths[path]; ok {
		return path
	}
	parts := strings.Split(path, "/")
	best := ""
	for candidate := range d.paths {
		own := strings.Split(candidate, "/")
		fits := len(own) == len(parts)
		for i := 0; fits && i < len(own); i++ {
			fits = own[i] == parts[i] || strings.HasPrefix(own[i], "{")
		}
		// If two paths match, the one with fewer parameters is used.
		if fits && (best == "" || strings.Count(candidate, "{") < strings.Count(best, "{")) {
			best = candidate
		}
	}
	require.NotEmpty(t, best, "no path of the document is that of %s", path)
	return best
}

// holds validates an answer against the document's schema.
func (d *described) holds(t *testing.T, method, path string, status int, as string, body []byte) {
	t.Helper()
	at := d.template(t, path)
	d.asked[method+" "+at] = true
	if status == http.StatusNoContent {
		assert.Empty(t, body)
		assert.Contains(t, string(d.paths[at][strings.ToLower(method)]), `"204"`, at)
		return
	}
	pointer := "#/components/schemas/Problem"
	if status < 300 {
		pointer = fmt.Sprintf("#/paths/%s/%s/responses/%d/content/%s/schema",
			strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(at),
			strings.ToLower(method), status, strings.ReplaceAll(as, "/", "~1"))
	}
	schema, err := d.compiler.Compile("openapi.json" + pointer)
	require.NoError(t, err, "%s %s", method, path)
	lines := [][]byte{body}
	if as == typeLines {
		lines = bytes.Split(bytes.TrimSpace(body), []byte("\n"))
	}
	for _, text := range lines {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err, "%s %s: %s", method, path, text)
		require.NoError(t, schema.Validate(value), "%s %s: %s", method, path, text)
	}
}

// exchange is one request of TestEveryRoute.
type exchange struct {
	method, path, text string
	status             int
	has                string // a text in the answer
}

// exchanges contains requests to every path of the document. FOLDER stands for a folder with the
// file f.
var exchanges = []exchange{
	{"GET", "/v1", "", 200, `"/v1/nodes/A"`},
	{"GET", "/v1/openapi.json", "", 200, `"openapi"`},
	{"GET", "/v1/process", "", 200, `"version":"test"`},
	{"GET", "/v1/problems/no-route", "", 200, `no route to host`},
	{"GET", "/v1/nodes", "", 200, `"name":"B"`},
	{"GET", "/v1/nodes/A", "", 200, `"name":"A"`},
	{"GET", "/v1/nodes/A/about", "", 200, `"name":"A"`},
	{"GET", "/v1/nodes/A/commands", "", 200, `"events":["begun","each"]`},
	{"GET", "/v1/nodes/A/running", "", 200, `[]`},
	{"DELETE", "/v1/nodes/A/running/7", "", 404, `no such running command`},
	{"GET", "/v1/network", "", 200, `{"name":"A","router":true}`},
	{"GET", "/v1/network", "", 200, `{"subnet":"10.0.0.0/24","ends":[` +
		`{"node":"A","iface":"if0","addr":"10.0.0.1"},{"node":"B","iface":"if0","addr":"10.0.0.2"}]}`},

	{
		"POST", "/v1/nodes/B/commands/set-dns", `{"names":[{"name":"C","addrs":["10.1.0.2"]}]}`, 200,
		`"names":[{"name":"C","addrs":["10.1.0.2"]}]`,
	},
	{"POST", "/v1/nodes/A/commands/set-dns", `{"servers":["10.0.0.2"]}`, 200, `"zone":"internal"`},
	{"POST", "/v1/nodes/A/commands/resolve", `{"name":"c"}`, 200, `"addrs":["10.1.0.2"]`},
	{"POST", "/v1/nodes/A/commands/resolve", `{"name":"x"}`, 404, `no-such-name`},
	{"GET", "/v1/nodes/B/dns", "", 200, `"what":"NXDOMAIN"`},
	{"POST", "/v1/nodes/A/commands/dns", "", 200, `"servers":["10.0.0.2"]`},
	{"POST", "/v1/nodes/B/commands/set-dns", `{}`, 200, `"names":[]`},
	{"POST", "/v1/nodes/B/commands/listen", `{"port":7000}`, 200, `"sid":0`},
	{"POST", "/v1/nodes/A/commands/connect", `{"addr":"10.0.0.2","port":7000}`, 200, `"sid":0`},
	{"POST", "/v1/nodes/A/commands/write", `{"sid":0,"data":"aGVsbG8="}`, 200, `{"bytes":5}`},
	{"POST", "/v1/nodes/B/commands/read", `{"sid":1,"n":5,"full":true}`, 200, `"aGVsbG8="`},
	{"POST", "/v1/nodes/A/commands/window", `{"sid":0}`, 200, `"send":`},
	{"POST", "/v1/nodes/A/commands/congestion", `{"sid":0,"name":"reno"}`, 200, `"reno"`},
	{"GET", "/v1/nodes/A/sockets", "", 200, `"state":"ESTABLISHED"`},
	{"GET", "/v1/nodes/A/sockets?info=true", "", 200, `"congestion":"reno"`},
	{"GET", "/v1/nodes/A/sockets?info", "", 200, `"congestion":"reno"`},
	{"GET", "/v1/nodes/A/sockets?timers", "", 200, `"state":"ESTABLISHED"`},
	{"POST", "/v1/nodes/A/commands/sockets", `{"info":true}`, 200, `"limited":`},
	{"POST", "/v1/nodes/A/commands/shutdown", `{"sid":0,"how":"write"}`, 204, ""},
	{"POST", "/v1/nodes/A/commands/close", `{"sid":0}`, 204, ""},
	{"POST", "/v1/nodes/B/commands/recv-file", `{"path":"nowhere/at/all","port":7001}`, 404, ""},
	{
		"POST", "/v1/nodes/A/commands/send-file",
		`{"path":"f","addr":"10.0.0.2","port":7002}`, 502, "connection refused",
	},
	{"POST", "/v1/nodes/B/commands/serve", `{"port":80,"dir":"."}`, 200, `"state":"LISTEN"`},
	{"POST", "/v1/nodes/A/commands/fetch", `{"url":"10.0.0.2/f"}`, 200, `"status":"200 OK"`},

	{"POST", "/v1/nodes/A/commands/about", "", 200, `"A"`},
	{"GET", "/v1/nodes/A/interfaces", "", 200, `"name":"if0"`},
	{"POST", "/v1/nodes/A/commands/interfaces", "", 200, `"name":"if0"`},
	{"GET", "/v1/nodes/A/neighbors", "", 200, `"10.0.0.2"`},
	{"POST", "/v1/nodes/A/commands/neighbors", "", 200, `"10.0.0.2"`},
	{"GET", "/v1/nodes/A/routes", "", 200, `"origin":"L"`},
	{"POST", "/v1/nodes/A/commands/routes", "", 200, `"origin":"L"`},
	{"GET", "/v1/nodes/A/rip", "", 200, `"dialect":"rip"`},
	{"POST", "/v1/nodes/A/commands/rip", "", 200, `"dialect":"rip"`},
	{"GET", "/v1/nodes/A/settings?key=tcp.", "", 200, `"key":"tcp.congestion"`},
	{"POST", "/v1/nodes/A/commands/show", `{"key":"tcp.ecn"}`, 200, `"key":"tcp.ecn"`},
	{"POST", "/v1/nodes/A/commands/set", `{"key":"tcp.ecn","value":"on"}`, 200, `"on"`},
	{"POST", "/v1/nodes/A/commands/verbose", `{"on":false,"sid":-1}`, 204, ""},
	{"POST", "/v1/nodes/A/commands/set-loss", `{"percent":2}`, 200, `"percent":2`},
	{"GET", "/v1/nodes/A/loss", "", 200, `"percent":2`},
	{"POST", "/v1/nodes/A/commands/loss", "", 200, `"percent":2`},
	{
		"POST", "/v1/nodes/A/commands/impair", `{"iface":"if0","way":"out","words":"delay 1us"}`, 200,
		`"words":"delay 1`,
	},
	{"GET", "/v1/nodes/A/impairments?iface=if0", "", 200, `"way":"in"`},
	{"POST", "/v1/nodes/A/commands/impairments", "", 200, `"seen":`},
	{"GET", "/v1/nodes/A/counters", "", 200, `"impairments":[{`},
	{"POST", "/v1/nodes/A/commands/clear-counters", "", 204, ""},
	{"POST", "/v1/nodes/A/commands/add-route", `{"prefix":"10.9.0.0/16","via":"10.0.0.2"}`, 204, ""},
	{
		"POST", "/v1/nodes/A/commands/add-route", `{"prefix":"10.9.0.0/16","via":"10.0.0.2"}`, 409,
		`/v1/problems/route-exists`,
	},
	{"POST", "/v1/nodes/A/commands/del-route", `{"prefix":"10.9.0.0/16"}`, 204, ""},
	{"POST", "/v1/nodes/A/commands/pcap-start", `{"file":"p"}`, 204, ""},
	{
		"POST", "/v1/nodes/A/commands/start-capture", `{"file":"q","filter":"icmp"}`, 200,
		`"id":1`,
	},
	{"GET", "/v1/nodes/A/captures", "", 200, `"filter":"icmp"`},
	{"GET", "/v1/nodes/A/transfers", "", 200, `[]`},
	{"POST", "/v1/nodes/A/commands/transfers", "", 200, `[]`},
	{"POST", "/v1/nodes/A/commands/stop-transfer", `{"id":9}`, 404, `no such transfer`},
	{"POST", "/v1/nodes/A/commands/captures", "", 200, `"kind":"capture"`},
	{"POST", "/v1/nodes/A/commands/stop-capture", `{}`, 200, `"missed":0`},
	{"POST", "/v1/nodes/A/commands/capture", `{"filter":"tcp and"}`, 400, `the filter is incomplete`},
	{"POST", "/v1/nodes/A/commands/trace", `{"sid":99}`, 404, `no such socket`},
	{"POST", "/v1/nodes/A/commands/samples", `{"sid":99}`, 404, `no such socket`},
	{"GET", "/v1/nodes/A/capture?iface=if7", "", 404, `this node has if0`},
	{"GET", "/v1/nodes/A/streams/capture?count=x", "", 400, `must be a whole number`},
	{"GET", "/v1/nodes/A/streams/trace?sid=99", "", 404, `no such socket`},
	{"GET", "/v1/nodes/A/streams/samples?sid=99&every_ns=1", "", 404, `no such socket`},
	{"POST", "/v1/nodes/A/commands/pcap-stop", "", 200, `"packets":`},

	{"POST", "/v1/nodes/A/commands/send-test", `{"addr":"10.0.0.2","text":"x"}`, 200, `21`},
	{"POST", "/v1/nodes/A/commands/ping", `{"addr":"10.0.0.2","count":1}`, 200, `"received":1`},
	{"POST", "/v1/nodes/A/commands/traceroute", `{"addr":"10.0.0.2"}`, 200, `"ttl":1`},
	{"POST", "/v1/nodes/B/commands/listen-udp", `{"port":53}`, 200, `"state":"UDP"`},
	{
		"POST", "/v1/nodes/A/commands/send-udp", `{"addr":"10.0.0.2","port":53,"data":"eA=="}`, 200,
		`"bytes":1`,
	},
	{"POST", "/v1/nodes/A/commands/reload", `{"try":true}`, 501, "this node was not started from a file"},
	{"GET", "/v1/nodes/A/tcp", "", 200, `"segments_in":`},
	{"POST", "/v1/nodes/A/commands/tcp-counters", "", 200, `"drops":`},
	{"GET", "/v1/nodes/A/doors", "", 200, "[]"},
	{"POST", "/v1/nodes/A/commands/doors", "", 200, "[]"},
	{
		"POST", "/v1/nodes/A/commands/publish", `{"port":0,"to":"10.0.0.2:80"}`, 200,
		`"kind":"publish","network":"tcp","from":"127.0.0.1:`,
	},
	{"GET", "/v1/nodes/A/doors", "", 200, `"to":"10.0.0.2:80"`},
	{"POST", "/v1/nodes/A/commands/close-door", `{"id":0}`, 204, ""},
	{"POST", "/v1/nodes/A/commands/close-door", `{"id":0}`, 404, "0: no such port forward"},
	{"POST", "/v1/nodes/A/commands/expose", `{"port":80,"to":"x"}`, 400, "must be HOST:PORT"},
	{"POST", "/v1/nodes/A/commands/publish", `{"to":"x"}`, 400, "address and port such as"},
	{"POST", "/v1/nodes/A/commands/splice", `{"addr":"10.9.9.9"}`, 400, "an address of this node"},
	{"POST", "/v1/nodes/A/commands/socks", `{"port":0}`, 200, `"kind":"socks"`},
	{"POST", "/v1/nodes/A/commands/socks", `{"port":0,"user":"u"}`, 400, "password"},
	{"POST", "/v1/nodes/A/commands/set-nat", `{"iface":"if0","on":true}`, 204, ""},
	{"POST", "/v1/nodes/A/commands/set-nat", `{"iface":"if7","on":true}`, 404, "no such interface"},
	{"GET", "/v1/nodes/A/nat", "", 200, `"outside":"10.0.0.1"`},
	{"POST", "/v1/nodes/A/commands/nat", "", 200, `"mapping":"endpoint-independent"`},
	{"POST", "/v1/nodes/A/commands/clear-nat", `{"iface":"if0"}`, 200, `"sessions":`},
	{"POST", "/v1/nodes/B/commands/clear-nat", `{"iface":"if0"}`, 400, "has no NAT"},
	{"POST", "/v1/nodes/A/commands/set-nat", `{"iface":"if0"}`, 204, ""},
	{"POST", "/v1/nodes/B/commands/nat-serve", `{}`, 400, "two interfaces"},
	{"POST", "/v1/nodes/A/commands/nat-probe", `{"server":"[::1]:3478"}`, 400, "IPv4"},
	{"POST", "/v1/nodes/B/commands/rcp-echo", `{"port":9000}`, 200, `"local":`},
	{
		"POST", "/v1/nodes/A/commands/rcp-count", `{"addr":"10.0.0.2","port":9000,"writes":2}`, 200,
		`"writes":2`,
	},
	{"GET", "/v1/nodes/B/rcp", "", 200, `"state":"listening"`},
	{"POST", "/v1/nodes/B/commands/rcp-sockets", "", 200, `"state":"listening"`},
	{"POST", "/v1/nodes/B/commands/rcp-close", `{"port":9000}`, 204, ""},
	{"POST", "/v1/nodes/B/commands/rdt-serve", `{"port":9000,"paths":["f"]}`, 200, `"objects":1`},
	{"POST", "/v1/nodes/A/commands/rdt-list", `{"addr":"10.0.0.2","port":9000}`, 200, `"name":"f"`},
	{"POST", "/v1/nodes/A/commands/rdt-fetch", `{"addr":"10.0.0.2","port":9000}`, 200, `"received":`},
	{
		"POST", "/v1/nodes/A/commands/rdt-fetch", `{"addr":"10.0.0.2","port":9000,"names":["g"]}`, 404,
		`/v1/problems/no-such-object`,
	},
	{"GET", "/v1/nodes/B/rdt", "", 200, `"state":"serving"`},
	{"POST", "/v1/nodes/B/commands/rdt-flows", "", 200, `"state":"done"`},
	{"POST", "/v1/nodes/B/commands/rdt-close", `{"port":9000}`, 204, ""},
	{"POST", "/v1/nodes/B/commands/serve-small", `{"service":"echo"}`, 200, `"state":"LISTEN"`},
	{"POST", "/v1/nodes/A/commands/echo", `{"addr":"10.0.0.2","count":1}`, 200, `"received":1`},
	{"POST", "/v1/nodes/B/commands/perf-serve", `{"background":true}`, 200, `"busy":false`},
	{"GET", "/v1/nodes/B/perf", "", 200, `"0.0.0.0:5201"`},
	{"POST", "/v1/nodes/A/commands/perf", `{"addr":"10.0.0.2","bytes":1000}`, 200, `"sum_sent":`},
	{"POST", "/v1/nodes/B/commands/perf-servers", "", 200, `"tests":1`},
	{"POST", "/v1/nodes/B/commands/perf-close", "", 204, ""},
	{"POST", "/v1/transfers", `{"from":"A","to":"B","bytes":100000}`, 200, `"same":true`},
	{"POST", "/v1/nodes/A/commands/set-link", `{"iface":"if0","up":false}`, 200, `"up":false`},
}

// TestEveryRoute sends requests to real nodes for every path of the document, and validates each
// answer.
func TestEveryRoute(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("f", []byte("text"), 0o600))
	b := newBed(t)
	_, _, served := b.do(t, "GET", "/v1/openapi.json", "", "")
	d := describe(t, served)
	for _, e := range exchanges {
		if e.path == "/v1/nodes/B/commands/read" { // B accepts a little later than A connects
			require.Eventually(t, func() bool {
				_, _, body := b.do(t, "GET", "/v1/nodes/B/sockets", "", "")
				return bytes.Contains(body, []byte(`"sid":1,`))
			}, time.Minute, time.Millisecond)
		}
		status, as, body := b.do(t, e.method, e.path, "", e.text)
		assert.Equal(t, e.status, status, "%s %s: %s", e.method, e.path, body)
		assert.Contains(t, string(body), e.has, "%s %s", e.method, e.path)
		d.holds(t, e.method, e.path, status, as, body)
	}
	for path, item := range d.paths {
		for method := range item {
			what := strings.ToUpper(method) + " " + path
			// Other tests cover these: TestEvents, TestStream.
			if method != "parameters" && path != "/v1/nodes/{node}/events" && path != "/v1/stream" {
				assert.True(t, d.asked[what], "nobody asked %s", what)
			}
		}
	}
}

// TestStreamsAreDescribed checks that the document describes each line of a streaming command.
func TestStreamsAreDescribed(t *testing.T) {
	b := newBed(t)
	d := describe(t, openAPIDocument)
	for path, text := range map[string]string{
		"ping":       `{"addr":"10.0.0.2","count":2,"interval_ns":10000000}`,
		"traceroute": `{"addr":"10.0.0.2"}`,
		"sockets":    `{}`,
		"close":      `{"sid":99}`,
		"verbose":    `{"sid":-1}`,
	} {
		path = "/v1/nodes/A/commands/" + path
		status, as, body := b.do(t, "POST", path, typeLines, text)
		assert.Equal(t, http.StatusOK, status, path)
		assert.Equal(t, typeLines, as, path)
		d.holds(t, "POST", path, status, as, body)
		assert.True(t, bytes.HasPrefix(body, []byte(`{"event":"running"`)), "%s: %s", path, body)
	}
	_, _, body := b.do(t, "POST", "/v1/nodes/A/commands/ping", typeLines,
		`{"addr":"10.0.0.2","count":2,"interval_ns":10000000}`)
	var events []string
	for text := range bytes.Lines(body) {
		var l streamLine
		require.NoError(t, json.Unmarshal(text, &l))
		events = append(events, l.Event)
	}
	assert.Equal(t, []string{"running", "begun", "each", "each", "result"}, events)
}

// TestADistributionIsAFileOfTheFolder checks that a distribution file in a link's options must be
// within the folder.
func TestADistributionIsAFileOfTheFolder(t *testing.T) {
	b := newBed(t)
	status, _, body := b.do(t, "POST", "/v1/nodes/A/commands/impair", "",
		`{"iface":"if0","words":"delay 1ms 1ms distribution /etc/passwd"}`)
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, string(body), "outside of the folder")
}

// TestWrongRequests checks that the answer is a problem document with one line that says how to
// correct the request.
func TestWrongRequests(t *testing.T) {
	b := newBed(t)
	d := describe(t, openAPIDocument)
	const commands = "/v1/nodes/A/commands/"
	victim := filepath.Join(t.TempDir(), "victim")
	for _, tt := range []struct {
		method, path, text string
		status             int
		sort, detail       string
	}{
		{"GET", "/", "", 404, "no-such-path", "/: no such path; /v1/openapi.json lists"},
		{"GET", "/v1/nodes/Q", "", 404, "no-such-node", `"Q": no such node; the nodes are A, B`},
		{"GET", "/v1/nodes/A/socks", "", 404, "no-such-path", "no such path"},
		{"GET", "/v1/problems/none", "", 404, "no-such-path", "no problem type"},
		{"PUT", "/v1/nodes/A/sockets", "", 405, "method-not-allowed", "use GET"},
		{"GET", commands + "ping", "", 405, "method-not-allowed", "use POST"},
		{"POST", commands + "pong", "", 404, "no-such-path", `"pong": no such path`},
		{"POST", commands + "sendfile", "", 404, "no-such-path", "(did you mean send-file?)"},
		{"GET", "/v1/nodes/A/socket", "", 404, "no-such-path", "(did you mean sockets?)"},
		{
			"POST", commands + "serve", `{"port":1,"dir":"server.go"}`, 400, "not-a-folder",
			"serve: open server.go: not a directory",
		},
		{
			"POST", commands + "serve", `{"port":1,"dir":"server.go/x"}`, 400, "not-a-folder",
			"serve: open server.go/x: not a directory",
		},
		{
			"POST", commands + "recv-file", `{"path":"server.go/x","port":1}`, 400, "not-a-folder",
			"not a directory",
		},
		{
			"POST", commands + "recv-file", `{"path":"a\u0000b","port":1}`, 400, "invalid-request",
			"a file name must not contain a zero byte",
		},
		{"GET", "/v1/nodes/A/sockets?infos=1", "", 400, "invalid-request", "the fields are info"},
		{"GET", "/v1/nodes/A/routes?x=1", "", 400, "invalid-request", "there are no fields"},
		{"GET", "/v1/nodes/A/sockets?info=maybe", "", 400, "invalid-request", "must be true or false"},
		{"GET", "/v1/nodes/A/sockets?%zz", "", 400, "invalid-request", "query"},
		{ // RFC 9110 §9.2.1: a GET is safe
			"GET", "/v1/nodes/A/capture?file=" + victim, "", 400, "invalid-request",
			"a GET writes no file; use POST /v1/nodes/A/commands/capture",
		},
		{
			"GET", "/v1/nodes/A/streams/capture?file=" + victim, "", 400, "invalid-request",
			"a GET writes no file",
		},
		{
			"POST", commands + "start-capture", `{"file":"../../etc/passwd"}`, 400,
			"invalid-request", "file names must be relative to the node's folder",
		},
		{
			"POST", commands + "send-file", `{"path":"/etc/passwd","addr":"10.0.0.2","port":1}`, 400,
			"invalid-request", "outside of the folder",
		},
		{
			"POST", commands + "rdt-serve", `{"port":1,"paths":["server.go","../.."]}`, 400,
			"invalid-request", "outside of the folder",
		},
		{
			"POST", commands + "recv-file", `{"path":"` + strings.Repeat("a", 5000) + `","port":1}`, 400,
			"invalid-request", "file name with 5000 bytes: file name too long",
		},
		{
			"POST", commands + "recv-file", `{"path":"` + strings.Repeat("a", 300) + `","port":1}`, 400,
			"name-too-long", "file name too long",
		},
		{
			"POST", commands + "recv-file", `{"path":"server.go","port":1}`, 409, "file-exists",
			"server.go: file already exists",
		},
		{
			"POST", commands + "start-capture", `{"file":"server.go","overwrite":true}`, 409, "file-exists",
			"not a pcapng file",
		},
		{
			"POST", commands + "listen", `{"prot":1}`, 400, "invalid-request",
			`listen: invalid request: unknown field "prot"; the fields are port`,
		},
		{
			"POST", commands + "listen", `{"port":70000}`, 400, "invalid-request",
			`"port" cannot be 70000: must be a whole number from 0 to 65535`,
		},
		{"POST", commands + "listen", `{"port":"x"}`, 400, "invalid-request", "must be a whole number"},
		{"POST", commands + "listen", `{"port":1,"Port":2}`, 400, "invalid-request", `duplicate key "Port"`},
		{"POST", commands + "listen", " null ", 400, "invalid-request", "the request cannot be null: must be an object; the fields are port"},
		{"POST", commands + "listen", strings.Repeat("[", 1<<20), 400, "invalid-request", "exceeded max depth"},
		{
			"POST", commands + "ping", `{"count":1}`, 400, "invalid-request",
			`invalid request: "addr" is missing: must be an address such as 10.0.0.2 or 2001:db8::2`,
		},
		{
			"POST", commands + "add-route", "", 400, "invalid-request",
			`"prefix" is missing: must be a network such as 10.0.0.0/24 or 2001:db8::/64`,
		},
		{
			"POST", commands + "publish", `{"port":8080}`, 400, "invalid-request",
			`"to" is missing: must be an address and port such as 10.0.0.2:80 or [fd00::2]:80`,
		},
		{"POST", commands + "verbose", `{"on":1}`, 400, "invalid-request", "must be true or false"},
		{
			"POST", commands + "ping", `{"count":1,"addr":"nonsense"}`, 400, "invalid-request",
			`ping: invalid request: "addr" cannot be "nonsense": must be an address such as 10.0.0.2 or 2001:db8::2`,
		},
		{
			"POST", commands + "ping", `{"addr":7}`, 400, "invalid-request",
			`"addr" cannot be a number: must be an address such as 10.0.0.2 or 2001:db8::2`,
		},
		{
			"POST", commands + "publish", `{"to":"10.0.0.2"}`, 400, "invalid-request",
			`"to" cannot be "10.0.0.2": must be an address and port such as 10.0.0.2:80 or [fd00::2]:80`,
		},
		{
			"POST", commands + "add-route", `{"prefix":"10.0.0.0/33"}`, 400, "invalid-request",
			`"prefix" cannot be "10.0.0.0/33": must be a network such as 10.0.0.0/24 or 2001:db8::/64`,
		},
		{
			"POST", commands + "listen", `{`, 400, "invalid-request",
			"listen: invalid request: invalid JSON: it ends at byte 1, within an object",
		},
		{
			"POST", commands + "listen", `[]`, 400, "invalid-request",
			"the request cannot be a list: must be an object; the fields are port",
		},
		{"POST", commands + "listen", `{]`, 400, "invalid-request", "invalid JSON at byte 2: "},
		{"POST", commands + "listen", `{"port":1} 2`, 400, "invalid-request", "unexpected data"},
		{"POST", commands + "close", `{"sid":5}`, 404, "no-such-socket", "no such socket"},
		{"POST", commands + "set-link", `{"iface":"x"}`, 404, "no-such-interface", "this node has if0"},
		{"POST", commands + "connect", `{"addr":"10.9.9.9","port":1}`, 502, "unreachable", "no route"},
		{"GET", "/v1/stream?connection=A", "", 400, "invalid-request", "must be NODE/SID"},
		{"GET", "/v1/stream?connection=Q/1", "", 404, "no-such-node", "the nodes are A, B"},
		{
			"GET", "/v1/stream?connection=" + strings.Repeat("A/1&connection=", 9) + "A/1", "", 400,
			"invalid-request", "at most 8",
		},
		{"POST", "/v1/transfers", "{", 400, "invalid-request", "transfer: invalid request"},
		{"POST", "/v1/transfers", `{"form":"A"}`, 400, "invalid-request", `"form"; the fields are from, to`},
		{"POST", "/v1/transfers", `{"from":7}`, 400, "invalid-request", `"from" cannot be a number`},
		{"POST", "/v1/transfers", "{}{}", 400, "invalid-request", "unexpected data"},
		{"POST", "/v1/transfers", `{"from":"A","to":"Q","bytes":1}`, 404, "no-such-node", "A, B"},
		{"POST", "/v1/transfers", `{"from":"A","to":"A","bytes":1}`, 400, "invalid-request", "itself"},
		{"POST", "/v1/transfers", `{"from":"A","to":"B"}`, 400, "invalid-request", "must be 1 to"},
		{"POST", commands + "pcap-stop", "", 409, "not-capturing", "no capture is running"},
		{"POST", commands + "window", strings.Repeat(" ", maxBody) + "{}", 413, "too-large", "bytes"},
	} {
		status, as, body := b.do(t, tt.method, tt.path, "", tt.text)
		what := tt.method + " " + tt.path + " " + tt.text[:min(40, len(tt.text))]
		assert.Equal(t, tt.status, status, "%s: %s", what, body)
		assert.Equal(t, typeProblem, as, what)
		var p Problem
		require.NoError(t, json.Unmarshal(body, &p), "%s: %s", what, body)
		assert.Equal(t, problemPath+tt.sort, p.Type, what)
		assert.Equal(t, tt.status, p.Status, what)
		assert.Contains(t, p.Detail, tt.detail, what)
		assert.NotContains(t, p.Detail, "\n", what)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		require.NoError(t, err)
		schema, err := d.compiler.Compile("openapi.json#/components/schemas/Problem")
		require.NoError(t, err)
		assert.NoError(t, schema.Validate(value), what)
	}
	assert.NoFileExists(t, victim)
}

// TestEverySentinelHasAProblemType checks that each sentinel of control has a name, so that a
// client can restore it.
func TestEverySentinelHasAProblemType(t *testing.T) {
	for _, err := range control.Sentinels() {
		p := problemOf(fmt.Errorf("there: %w", err))
		assert.NotEqual(t, problemPath+failed, p.Type, "%v", err)
		require.ErrorIs(t, p, err)
		assert.Equal(t, "there: "+err.Error(), p.Error())
	}
	require.NotErrorIs(t, problemOf(control.ErrClosed), control.ErrReset)
	var names []string
	for _, s := range sorts {
		names = append(names, s.name)
	}
	slices.Sort(names)
	assert.Len(t, slices.Compact(slices.Clone(names)), len(names))
}
