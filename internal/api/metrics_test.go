package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	_ "net/http/pprof" // for http.DefaultServeMux
	"net/netip"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// exposed parses the text format strictly and returns the samples by name and labels.
func exposed(t *testing.T, text string) map[string]float64 {
	t.Helper()
	name := regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	label := regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)`)
	require.True(t, strings.HasSuffix(text, "\n"))
	samples, helped, typed := map[string]float64{}, map[string]bool{}, map[string]string{}
	current := ""
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		where := fmt.Sprintf("line %d: %s", i+1, line)
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			current, _, _ = strings.Cut(rest, " ")
			require.Regexp(t, name, current, where)
			require.False(t, helped[current], "%s: twice", where)
			helped[current] = true
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			of, kind, _ := strings.Cut(rest, " ")
			require.Equal(t, current, of, where)
			require.Contains(t, []string{counter, gauge}, kind, where)
			require.Equal(t, kind == counter, strings.HasSuffix(of, "_total") ||
				kind == counter && strings.HasPrefix(of, "node_netstat_"), where)
			typed[of] = kind
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		require.Positive(t, at, where)
		key, number := line[:at], line[at+1:]
		of, labels, has := strings.Cut(key, "{")
		require.Equal(t, current, of, "%s: samples of one metric stand together", where)
		require.NotEmpty(t, typed[of], where)
		for has && labels != "}" {
			m := label.FindStringSubmatch(strings.TrimSuffix(labels, "}"))
			require.NotNil(t, m, "%s: at %s", where, labels)
			labels = labels[len(m[0]):]
		}
		value, err := strconv.ParseFloat(number, 64)
		require.NoError(t, err, where)
		_, twice := samples[key]
		require.False(t, twice, "%s: twice", where)
		samples[key] = value
	}
	return samples
}

// TestMetrics checks that the metrics of two nodes are well-formed and equal the nodes' counters.
func TestMetrics(t *testing.T) {
	b := newBed(t)
	a := b.nodes["A"]
	testenv.Ask(t, a, control.Ping{Addr: netip.MustParseAddr("10.0.0.2"), Count: 2})
	testenv.Ask(t, a, control.Expose{Port: 80, To: "127.0.0.1:3000"})
	s := New(Config{Nodes: b.nodes, Version: `v"1\` + "\n"})
	defer s.Close()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, typeMetrics, w.Header().Get("Content-Type"))
	got := exposed(t, w.Body.String())
	assert.InDelta(t, 1, got[`tidepool_build_info{version="v\"1\\\n"}`], 0)
	for _, name := range []string{
		"go_goroutines", "go_memstats_alloc_bytes", "go_memstats_sys_bytes",
	} {
		assert.Positive(t, got[name], name)
	}
	if runtime.GOOS == "linux" {
		for _, name := range []string{
			"process_open_fds", "process_max_fds", "process_resident_memory_bytes",
		} {
			assert.Positive(t, got[name], name)
		}
	}
	assert.InDelta(t, 1, got[`tidepool_node_up{node="B"}`], 0)
	assert.GreaterOrEqual(t, got[`node_network_transmit_packets_total{node="A",device="if0"}`], 2.0)
	assert.GreaterOrEqual(t, got[`node_network_receive_bytes_total{node="B",device="if0"}`], 56.0)
	assert.Contains(t, got, `node_netstat_Tcp_CurrEstab{node="A"}`)
	assert.InDelta(t, 1, got[`tidepool_sockets{node="A",state="LISTEN"}`], 0)
	assert.Contains(t, got, `tidepool_door_flows{node="A",door="0",kind="expose",network="tcp",`+
		`from="80",to="127.0.0.1:3000"}`)
}

// TestProfilesAreOff checks that the server has no profiles unless they are configured.
func TestProfilesAreOff(t *testing.T) {
	for on, profile := range map[bool]http.Handler{false: nil, true: http.DefaultServeMux} {
		s := New(Config{Profile: profile})
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/pprof/cmdline", nil))
		assert.Equal(t, on, w.Code == http.StatusOK)
		s.Close()
	}
}
