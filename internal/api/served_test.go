package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// shapeOf returns a shape with these nodes.
func shapeOf(names ...string) *Shape {
	s := &Shape{Name: "net", Nodes: []ShapeNode{}, Links: []ShapeLink{}}
	for _, name := range names {
		s.Nodes = append(s.Nodes, ShapeNode{Name: name})
	}
	return s
}

// TestReplaceOfTheNodes checks that later requests go to the new nodes.
func TestReplaceOfTheNodes(t *testing.T) {
	b := newBed(t)
	names := func() []string {
		var p Process
		_, _, body := b.do(t, http.MethodGet, "/v1/process", "", "")
		require.NoError(t, json.Unmarshal(body, &p))
		return p.Nodes
	}
	require.Equal(t, []string{"A", "B"}, names())
	b.server.Replace(map[string]control.Operator{"A": b.nodes["A"], "D": b.nodes["B"]},
		shapeOf("A", "D"))
	assert.Equal(t, []string{"A", "D"}, names())
	var s Shape
	_, _, body := b.do(t, http.MethodGet, "/v1/network", "", "")
	require.NoError(t, json.Unmarshal(body, &s))
	assert.Equal(t, *shapeOf("A", "D"), s)
	for path, want := range map[string]int{
		"/v1/nodes/A": http.StatusOK, "/v1/nodes/B": http.StatusNotFound,
		"/v1/nodes/D/interfaces": http.StatusOK,
	} {
		status, _, body := b.do(t, http.MethodGet, path, "", "")
		assert.Equal(t, want, status, "%s: %s", path, body)
	}
	_, _, body = b.do(t, http.MethodGet, "/metrics", "", "")
	assert.Contains(t, string(body), `node="D"`)
	assert.NotContains(t, string(body), `node="B"`)
}

// TestTheStreamFollowsTheNodes checks that the stream reports the new network and then the added
// nodes. Readers that join later get nothing about removed nodes. A node that stays is polled as
// before.
func TestTheStreamFollowsTheNodes(t *testing.T) {
	b := newBed(t)
	s := b.stream(t, "")
	s.find("life", `"node":"A","up":true`)
	s.find("life", `"node":"B","up":true`)
	s.heard = nil
	b.server.Replace(map[string]control.Operator{"A": b.nodes["A"], "D": b.nodes["B"]},
		shapeOf("A", "D"))
	s.find("life", `"node":"D","up":true`)
	told := false
	for _, h := range s.heard {
		told = told || h[0] == "network" && strings.Contains(h[1], `"name":"D"`)
		assert.False(t, !told && strings.Contains(h[1], `"node":"D"`), "before the network: %s", h)
		assert.False(t, told && strings.Contains(h[1], `"node":"B"`), "it is gone: %s", h)
	}
	later := b.stream(t, "")
	later.find("interfaces", `"node":"A"`)
	later.find("interfaces", `"node":"D"`)
	for _, h := range later.heard {
		assert.NotContains(t, h[1], `"node":"B"`)
	}
}

// TestRequestsAtARemovedNode checks that requests at a removed node end with that reason, and
// those at other nodes continue.
func TestRequestsAtARemovedNode(t *testing.T) {
	b := newBed(t)
	testenv.Ask(t, b.nodes["A"], control.Listen{Port: 80})
	k := testenv.Ask(t, b.nodes["B"], control.Connect{
		Addr: mustAddr("10.0.0.1"), Port: 80,
	})
	page := b.stream(t, fmt.Sprintf("?connection=B/%d", k.SID))
	open := func(method, path, accept, text string) io.ReadCloser {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost/v1/nodes/"+path,
			strings.NewReader(text))
		require.NoError(t, err)
		r.Header.Set("Accept", accept)
		resp, err := b.http.Do(r)
		require.NoError(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		require.Equal(t, http.StatusOK, resp.StatusCode)
		return resp.Body
	}
	const forever = `{"addr":"10.0.0.1"}`
	going := map[string]io.Reader{
		"events":  open(http.MethodGet, "B/events", typeEvents, ""),
		"lines":   open(http.MethodGet, "B/events", typeLines, ""),
		"command": open(http.MethodPost, "B/commands/ping", typeLines, forever),
	}
	staying := open(http.MethodGet, "A/events", typeLines, "")
	b.server.Replace(map[string]control.Operator{"A": b.nodes["A"]}, shapeOf("A"))
	for name, body := range going {
		text, err := io.ReadAll(body)
		require.NoError(t, err, name)
		assert.Contains(t, string(text), "B: the node does not answer: the node left the network", name)
	}
	page.find("sample", `"over"`)
	testenv.Ask(t, b.nodes["B"], control.Connect{
		Addr: mustAddr("10.0.0.1"), Port: 80,
	})
	in := bufio.NewScanner(staying)
	for in.Scan() && !strings.Contains(in.Text(), `"accepted"`) {
		t.Log(in.Text())
	}
	require.NoError(t, in.Err())
	assert.Contains(t, in.Text(), `"accepted"`)
}

// TestReplaceDuringRequests checks that many clients can send requests and read while the nodes
// change.
func TestReplaceDuringRequests(t *testing.T) {
	b := newBed(t)
	all := b.nodes
	one := map[string]control.Operator{"A": all["A"]}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for _, path := range []string{"/v1/network", "/v1/nodes", "/metrics", "/v1/nodes/B/sockets"} {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
					"http://localhost"+path, nil)
				if !assert.NoError(t, err) {
					return
				}
				resp, err := b.http.Do(r)
				if !assert.NoError(t, err) {
					return
				}
				_, err = io.Copy(io.Discard, resp.Body)
				assert.NoError(t, err)
				_ = resp.Body.Close()
				if path != "/v1/nodes/B/sockets" || resp.StatusCode != http.StatusNotFound {
					assert.Equal(t, http.StatusOK, resp.StatusCode, path)
				}
			}
		})
	}
	s := b.stream(t, "")
	for range 50 {
		b.server.Replace(one, shapeOf("A"))
		b.server.Replace(all, shapeOf("A", "B"))
	}
	close(stop)
	wg.Wait()
	b.server.Replace(one, shapeOf("A", "last"))
	s.find("network", `"last"`)
}
