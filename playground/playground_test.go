package playground

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/files"
)

// lossy is a network of three nodes, with a router that loses packets.
func lossy(seed uint64) Config {
	return Config{Name: "n.net", Seed: seed, Network: `
link A R delay 10ms
link R B delay 10ms loss 2%
`}
}

// transfer moves a file from A to B.
var transfer = []Input{
	{
		At: 100 * time.Millisecond, Node: "A", File: "big",
		Data: []byte(strings.Repeat("tidepool", 1<<15)),
	},
	{At: 200 * time.Millisecond, Node: "B", Line: "recvfile got 5000"},
	{At: 300 * time.Millisecond, Node: "A", Line: "sendfile big 10.1.0.2 5000"},
}

type output struct {
	mu   sync.Mutex
	text map[string]string
}

func (o *output) print(node, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text == nil {
		o.text = map[string]string{}
	}
	o.text[node] += text
}

// of returns the output of a node.
func (o *output) of(node string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text[node]
}

// in runs f with a new world in a bubble.
func in(t *testing.T, cfg Config, f func(t *testing.T, w *World, out *output)) {
	t.Helper()
	cfg.Files = t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		out := &output{}
		cfg.Print = out.print
		w, err := New(cfg)
		require.NoError(t, err)
		defer w.Close()
		f(t, w, out)
	})
}

// run replays inputs until 20 s.
func run(t *testing.T, cfg Config, inputs []Input) (s State) {
	t.Helper()
	in(t, cfg, func(t *testing.T, w *World, _ *output) {
		for i := range inputs {
			require.NoError(t, w.Replay(&inputs[i]))
		}
		w.Advance(20 * time.Second)
		s = w.State()
	})
	return s
}

func TestTransfer(t *testing.T) {
	t.Parallel()
	in(t, lossy(1), func(t *testing.T, w *World, out *output) {
		for i := range transfer {
			require.NoError(t, w.Replay(&transfer[i]))
		}
		w.Advance(20 * time.Second)
		got, err := w.File("B", "got")
		require.NoError(t, err)
		assert.Equal(t, transfer[0].Data, got)
		assert.NotZero(t, w.State().Retransmits)
		assert.Contains(t, out.of("A"), "> sendfile big 10.1.0.2 5000")
		assert.Contains(t, out.of("A"), "equal at both ends")
		list, err := w.List()
		require.NoError(t, err)
		assert.Equal(t, []FileInfo{{"A", "big", 1 << 18}, {"B", "got", 1 << 18}}, list)
	})
}

// TestMark checks that the time of the first retransmission does not depend on when a page asks for
// it.
func TestMark(t *testing.T) {
	t.Parallel()
	want := run(t, lossy(1), transfer).FirstRetransmit
	in(t, lossy(1), func(t *testing.T, w *World, _ *output) {
		for i := range transfer {
			require.NoError(t, w.Replay(&transfer[i]))
		}
		w.Advance(want - 1)
		assert.Zero(t, w.State().FirstRetransmit)
		assert.Zero(t, w.State().Retransmits)
		w.Advance(want)
		there := w.State() // includes the packets of this instant
		assert.Equal(t, want, there.FirstRetransmit)
		assert.NotZero(t, there.Retransmits)
		assert.Equal(t, there, w.State())
	})
}

// TestPortForwards checks that commands which need sockets of the machine report an error.
func TestPortForwards(t *testing.T) {
	t.Parallel()
	in(t, lossy(1), func(t *testing.T, w *World, out *output) {
		for _, line := range []string{
			"publish 8080 10.1.0.2:80", "expose 80 127.0.0.1:3000", "splice 10.0.0.1", "socks 1080",
		} {
			require.NoError(t, w.Do(&Input{Node: "A", Line: line}, nil))
			name, _, _ := strings.Cut(line, " ")
			assert.Contains(t, out.of("A"), name+": not supported in this page: a browser has no real")
		}
	})
}

// TestSource checks that `source` reads a script from the node's files, and that a script that runs
// itself ends.
func TestSource(t *testing.T) {
	t.Parallel()
	in(t, lossy(1), func(t *testing.T, w *World, out *output) {
		script := Input{Node: "A", File: "script", Data: []byte("interfaces\nsource script\n")}
		require.NoError(t, w.Do(&script, nil))
		require.NoError(t, w.Do(&Input{Node: "A", Line: "source script"}, nil))
		assert.Equal(t, 16, strings.Count(out.of("A"), "10.0.0.1"))
		assert.Contains(t, out.of("A"), "more than 16 nested")
	})
}

// TestHash checks that only the seed and the inputs affect the hash.
func TestHash(t *testing.T) {
	t.Parallel()
	want := run(t, lossy(1), transfer)
	assert.Equal(t, want, run(t, lossy(1), transfer), "again")
	assert.NotEqual(t, want.Hash, run(t, lossy(2), transfer).Hash, "another seed")
	in(t, lossy(1), func(t *testing.T, w *World, _ *output) {
		w.Get(&Request{Number: 1, Path: "/v1/stream"}, discard{}) // like a page
		for i := range transfer {
			require.NoError(t, w.Replay(&transfer[i]))
		}
		for at := w.Now(); at < 20*time.Second; at += 16 * time.Millisecond {
			w.Advance(at)
			w.State()
		}
		w.Complete("A", "send")
		w.Advance(20 * time.Second)
		assert.Equal(t, want, w.State(), "in steps, with a page")
	})
}

// TestPerf checks that the results that both ends of a perf test exchange do not depend on the
// machine: the seed determines the cookie, and the results contain no CPU time.
func TestPerf(t *testing.T) {
	t.Parallel()
	type report struct {
		Start struct{ Cookie string }
		End   struct {
			CPU map[string]float64 `json:"cpu_utilization_percent"`
		}
	}
	perf := func(seed uint64) (got report) {
		in(t, lossy(seed), func(t *testing.T, w *World, out *output) {
			require.NoError(t, w.Replay(&Input{At: time.Second, Node: "B", Line: "perf -s"}))
			client := Input{At: 2 * time.Second, Node: "A", Line: "perf -c 10.1.0.2 -t 1 --json"}
			require.NoError(t, w.Replay(&client))
			w.Advance(9 * time.Second)
			_, text, _ := strings.Cut(out.of("A"), "--json")
			text = text[strings.Index(text, "{") : strings.LastIndex(text, "}")+1]
			require.NoError(t, json.Unmarshal([]byte(text), &got), text)
		})
		return got
	}
	got := perf(1)
	assert.Len(t, got.Start.Cookie, 36)
	assert.Equal(t, got.Start.Cookie, perf(1).Start.Cookie)
	assert.NotEqual(t, got.Start.Cookie, perf(2).Start.Cookie, "another seed")
	assert.Contains(t, got.End.CPU, "host_total")
	for name, percent := range got.End.CPU {
		assert.Zero(t, percent, name)
	}
}

// TestPerfHash checks that perf tests send the same packets in each run, although streams,
// intervals and the end of a test coincide.
func TestPerfHash(t *testing.T) {
	t.Parallel()
	cfg := Config{Name: "n.net", Seed: 1, Network: "link A B delay 10ms rate 2mbit\n"}
	hashes := map[string]int{}
	for range 20 {
		in(t, cfg, func(t *testing.T, w *World, _ *output) {
			require.NoError(t, w.Replay(&Input{At: time.Second, Node: "B", Line: "perf -s"}))
			client := Input{At: 2 * time.Second, Node: "A", Line: "perf -c 10.0.0.2 -t 1 -w 64K -P 2"}
			require.NoError(t, w.Replay(&client))
			w.Advance(5 * time.Second)
			hashes[w.State().Hash]++
		})
	}
	assert.Len(t, hashes, 1, "%v", hashes)
}

// TestLog checks that replaying the inputs of a session repeats it.
func TestLog(t *testing.T) {
	t.Parallel()
	var inputs []Input
	var want State
	in(t, lossy(1), func(t *testing.T, w *World, _ *output) {
		do := func(i Input) {
			answer := &recorder{httptest.NewRecorder(), false}
			require.NoError(t, w.Do(&i, answer))
			inputs = append(inputs, i)
			w.Advance(w.Now() + time.Second)
			synctest.Wait() // because the race detector does not know virtual time
			require.Less(t, answer.Code, 300, "%s", answer.Body)
			require.Equal(t, i.Request != nil && i.Request.Accept == "", answer.over)
		}
		do(Input{Node: "A", Line: "ping 10.1.0.2 -c 100"})
		do(Input{Node: "B", Line: "interfaces"})
		do(Input{Request: &Request{
			Number: 1, Method: "POST", Path: "/v1/nodes/R/commands/impair",
			Body: `{"iface": "if0", "way": "out", "words": "delay 50ms loss 10%"}`,
		}})
		do(Input{Request: &Request{
			Number: 2, Method: "POST", Path: "/v1/nodes/B/commands/ping", Accept: "application/x-ndjson",
			Body: `{"addr": "10.0.0.1", "count": 100}`,
		}})
		do(Input{Abort: 2})
		do(Input{Node: "A", Stop: true})
		w.Advance(20 * time.Second)
		want = w.State()
	})
	assert.Equal(t, want, run(t, lossy(1), inputs))
}

// recorder is the client of a request.
type recorder struct {
	*httptest.ResponseRecorder

	over bool
}

func (r *recorder) End() { r.over = true }

func TestBadInput(t *testing.T) {
	t.Parallel()
	err := Check("n.net", "link A B dela 3\nfoo")
	require.ErrorContains(t, err, `n.net:1:10: "dela" is not an impairment`)
	require.ErrorContains(t, err, `n.net:2:1: "foo" is not a directive`)
	err = Check("n.net", "host alpha ssh user@alpha\nlink A B\nnode A alpha")
	require.ErrorContains(t, err, "remove `host alpha ssh user@alpha`")
	in(t, lossy(1), func(t *testing.T, w *World, out *output) {
		require.ErrorIs(t, w.Do(&Input{Node: "X", Line: "ping"}, nil), errNoNode)
		require.ErrorIs(t, w.Do(&Input{Node: "A", File: "../B/x"}, nil), files.ErrOutside)
		require.ErrorIs(t, w.Replay(&Input{At: 1, Node: "A", Line: "ping"}), errInput)
		require.NoError(t, w.Do(&Input{Node: "A", Line: "sendfile /etc/passwd 10.1.0.2 1"}, nil))
		assert.Contains(t, out.of("A"), "outside of the folder")
		for range maxTyped + 2 {
			err = w.Do(&Input{Node: "A", Line: "sleep 1000"}, nil)
		}
		require.ErrorIs(t, err, errTyped)
	})
}
