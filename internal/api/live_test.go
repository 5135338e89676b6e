package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// streamed reads the stream as a web page does.
type streamed struct {
	t     *testing.T
	in    *bufio.Scanner
	heard [][2]string // events and their data
}

func (b *bed) stream(t *testing.T, query string) *streamed {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/v1/stream"+query, nil)
	require.NoError(t, err)
	resp, err := b.http.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, typeEvents, resp.Header.Get("Content-Type"))
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, longestEvent)
	return &streamed{t: t, in: in}
}

// find returns the data of the first event of that name that contains a text. It waits until such
// an event arrives.
func (s *streamed) find(name, has string) string {
	s.t.Helper()
	for _, h := range s.heard {
		if h[0] == name && strings.Contains(h[1], has) {
			return h[1]
		}
	}
	for s.next() != "" {
		if h := s.heard[len(s.heard)-1]; h[0] == name && strings.Contains(h[1], has) {
			return h[1]
		}
	}
	require.FailNow(s.t, "the stream ended", "before %s with %s: %v", name, has, s.in.Err())
	return ""
}

// next reads one event and returns its name.
func (s *streamed) next() (event string) {
	for s.in.Scan() {
		field, value, _ := strings.Cut(s.in.Text(), ": ")
		switch field {
		case "event":
			event = value
		case "data":
			s.heard = append(s.heard, [2]string{event, value})
			return event
		}
	}
	return ""
}

// TestStream checks that a page receives all data that it shows, and every change.
func TestStream(t *testing.T) {
	b := newBed(t)
	s := b.stream(t, "")
	s.find("network", `"name":"B"`)
	s.find("tick", `"at":`)
	var faces NodeIfaces
	require.NoError(t, json.Unmarshal([]byte(s.find("interfaces", `"node":"A"`)), &faces))
	assert.Len(t, faces.Interfaces, 1)
	assert.Len(t, faces.Impairments, 2)
	s.find("life", `"node":"A","up":true`)
	require.NoError(t, control.Order(t.Context(), b.nodes["A"], control.AddRoute{
		Prefix: mustPrefix("10.9.0.0/16"), Via: mustAddr("10.0.0.2"),
	}))
	s.find("routes", `10.9.0.0/16`)
	testenv.Ask(t, b.nodes["A"], control.SetLink{Iface: "if0"})
	s.find("interfaces", `"up":false`)
}

// TestSlowPageLosesOldEvents checks that the queue of a slow reader is bounded and does not
// block the server.
func TestSlowPageLosesOldEvents(t *testing.T) {
	s := New(Config{Nodes: map[string]control.Operator{}})
	defer s.Close()
	h := &s.live
	asleep := h.join(0, []follow{{node: "A", sid: 1}})
	defer h.leave(asleep)
	for i := range 100_000 { // the number of events in one night
		h.set(s.ends, "A faces", "interfaces", i)
		h.addEvent(i)
		h.addFollowed(follow{node: "A", sid: 1}, "sample", i)
	}
	notes := h.take(asleep)
	assert.LessOrEqual(t, len(notes), keptEvents+keptFollowed+3)
	last := map[string]string{}
	for _, n := range notes {
		last[n.event] = string(n.text)
	}
	for _, event := range []string{"interfaces", "told", "sample"} {
		assert.Equal(t, "99999\n", last[event], event)
	}
	assert.Empty(t, h.take(asleep), "every event was sent")
	h.mu.Lock()
	defer h.mu.Unlock()
	assert.LessOrEqual(t, cap(h.events), 4*keptEvents)
}

// TestPageReconnects checks that a page that reconnects gets the current state and only the
// events that it missed.
func TestPageReconnects(t *testing.T) {
	s := New(Config{Nodes: map[string]control.Operator{}})
	defer s.Close()
	h := &s.live
	first := h.join(0, nil)
	h.set(s.ends, "A faces", "interfaces", "as it stands")
	h.addEvent("one")
	heard := h.take(first)
	seen := heard[len(heard)-1].seq
	h.addEvent("two")
	second := h.join(seen, nil)
	var texts []string
	for _, n := range h.take(second) {
		if n.event != "tick" && n.event != "network" {
			texts = append(texts, strings.TrimSpace(string(n.text)))
		}
	}
	assert.Equal(t, []string{`"as it stands"`, `"two"`}, texts)
	stranger := h.join(seen+1000, nil)
	texts = nil
	for _, n := range h.take(stranger) {
		texts = append(texts, strings.TrimSpace(string(n.text)))
	}
	assert.Contains(t, texts, `"one"`, "that number was another server's")
	for _, r := range []*reader{first, second, stranger} {
		h.leave(r)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	assert.Nil(t, h.stop, "without readers no node is observed")
	assert.Empty(t, h.readers)
}

// TestStreamFollowsAConnection checks that a stream follows a connection and reports its end.
func TestStreamFollowsAConnection(t *testing.T) {
	b := newBed(t)
	testenv.Ask(t, b.nodes["B"], control.Listen{Port: 80})
	k := testenv.Ask(t, b.nodes["A"], control.Connect{
		Addr: mustAddr("10.0.0.2"), Port: 80,
	})
	// An idle connection sends no events, so the test writes to it.
	await := func(s *streamed, name, has string) string {
		for s.in.Err() == nil {
			testenv.Ask(t, b.nodes["A"], control.Write{
				SID: k.SID, Data: []byte("hello"),
			})
			if s.next() == name && strings.Contains(s.heard[len(s.heard)-1][1], has) {
				return s.heard[len(s.heard)-1][1]
			}
		}
		require.FailNow(t, "the stream ended", "before %s: %v", name, s.in.Err())
		return ""
	}
	s := b.stream(t, fmt.Sprintf("?connection=A/%d&connection=A/77", k.SID))
	var l Look
	require.NoError(t, json.Unmarshal([]byte(await(s, "sample", `"cwnd"`)), &l))
	assert.Equal(t, "ESTABLISHED", l.Sample.State)
	assert.Contains(t, s.find("sample", `"over"`), "no such socket")
	s = b.stream(t, fmt.Sprintf("?segments=A/%d", k.SID))
	assert.Contains(t, await(s, "segments", `"length":5`), `"sent":true`)
}
