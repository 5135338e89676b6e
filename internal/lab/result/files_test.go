package result_test

import (
	"bytes"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

func record() *result.Record {
	return &result.Record{
		Title: "two flows", Duration: time.Minute, RTT: 176 * time.Millisecond, Rate: 2.435e6,
		Flows: []result.FlowRecord{
			{
				Name: "a", Label: "reno", Start: 1, RTT: 2, MSS: 1460, Upward: true,
				Own: []string{"alpha", "beta"},
				Samples: []result.Sample{
					{Own: []float64{-1e-9, 0.1}},
					{
						At: 59*time.Second + 1, Cwnd: 1, Ssthresh: 2, RTT: 3, SRTT: 1500 * time.Microsecond,
						RTTVar: 5, MinRTT: 6, RTO: time.Hour, Unacked: 8, InFlight: 9, Sacked: 10, Lost: 11,
						Retrans: 12, SendWindow: 13, BytesAcked: math.MaxUint64, BytesSent: 15,
						Retransmits: 16, Timeouts: 17, DupAcks: 18, DeliveryRate: 19, PacingRate: 20,
						State: "recovery", Own: []float64{1e300, 3},
					},
				},
				Segments: []result.Segment{
					{At: 7, Seq: 1 << 33, Len: 1460, Again: true},
					{At: 9, Received: true, Ack: 5, Window: 65535, SACK: [][2]uint64{{1, 2}, {7, 1 << 40}}},
				},
				Progress: []result.Point{{At: 11, Value: 0.5}, {At: 12, Value: 1e17}},
			},
			{Name: "b", Samples: []result.Sample{}, Segments: []result.Segment{}, Progress: []result.Point{}},
		},
		Links: []result.LinkRecord{{Name: "down", Rate: 12, Limit: 3, Rates: []result.Point{
			{At: 0, Value: 8}, {At: 40 * time.Second, Value: 16},
		}, Events: []result.LinkEvent{
			{At: 1, Kind: result.Arrival, Flow: 1, Bytes: 1500, Queued: 1500},
			{At: 2, Kind: result.Departure, Bytes: 1500, Wait: 1},
			{At: 3, Kind: result.Drop, Flow: -1, Bytes: 1500, Why: "the queue is full"},
			{At: 4, Kind: result.Opportunity, Flow: -1, Bytes: 1504},
			{At: 5, Kind: result.Marked},
		}}},
		Objects: []result.Object{{Flow: "a", Name: "x", Size: 9, Start: 1, End: 2, Done: true}},
		Marks:   []result.Mark{{At: 3, Text: "2 Mbit/s"}},
	}
}

func TestRecordRoundTrip(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, result.WriteRecord(dir, "00", record()))
	got, err := result.ReadRecord(dir, "00")
	require.NoError(t, err)
	assert.Equal(t, record(), got)

	text, err := os.ReadFile(result.FlowPath(dir, "00", 0, ""))
	require.NoError(t, err)
	names, rows, _ := strings.Cut(string(text), "\n")
	for _, name := range []string{"cwnd", "ssthresh", "rtt", "rttvar", "minrtt", "bytes_acked"} {
		assert.Contains(t, ","+names+",", ","+name+",", "a column of ss -ti")
	}
	assert.Contains(t, rows, "59.000000001,1,2,0.000003,1.5,", "seconds, bytes and milliseconds")

	_, err = result.ReadRecord(dir, "01")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// Each column of each table has a row in columns.csv.
func TestColumnDescriptions(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, result.WriteRecord(dir, "00", record()))
	rows, err := csv.NewReader(bytes.NewReader(result.Columns())).ReadAll()
	require.NoError(t, err)
	described := map[string][]string{}
	for _, row := range rows[1:] {
		assert.NotEmpty(t, row[3], "%s, %s", row[0], row[1])
		described[row[0]] = append(described[row[0]], row[1])
	}
	for file, path := range map[string]string{
		"flows/CELL-FLOW.csv": "flows/00-0.csv", "flows/CELL-FLOW-segments.csv": "flows/00-0-segments.csv",
		"flows/CELL-FLOW-progress.csv": "flows/00-0-progress.csv", "links/CELL-LINK.csv": "links/00-down.csv",
		"trials.csv": "",
	} {
		text := result.TrialsHeader()
		if path != "" {
			text, err = os.ReadFile(filepath.Join(dir, path))
			require.NoError(t, err)
		}
		head, _, _ := strings.Cut(string(text), "\n")
		head = strings.Replace(head, "cc_alpha,cc_beta", "cc_NAME", 1)
		assert.Equal(t, strings.Split(head, ","), described[file], file)
	}
}

// The values that a script records are in the last columns. Missing values are empty.
func TestScriptColumns(t *testing.T) {
	rows := []result.Sample{{At: 1}, {At: 2, Own: []float64{1.5}}, {At: 3, Own: []float64{math.NaN(), 2}}}
	text := string(result.FormatRows(rows, "alpha", "beta"))
	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Len(t, lines, 4)
	for i, want := range []string{",ca_state,cc_alpha,cc_beta", ",,,", ",,1.5,", ",,,2"} {
		assert.True(t, strings.HasSuffix(lines[i], want), lines[i])
	}
	got, err := result.ParseRows[result.Sample]("x.csv", []byte(text))
	require.NoError(t, err)
	require.Len(t, got, 3)
	assert.InDelta(t, 1.5, got[1].Own[0], 0)
	assert.True(t, math.IsNaN(got[1].Own[1]))
	assert.Equal(t, text, string(result.FormatRows(got, "alpha", "beta")))
	_, err = result.ParseRows[result.Sample]("x.csv", []byte("time_s,cc_alpha\n1,x\n"))
	require.ErrorContains(t, err, "x.csv:2: ")
	_, err = result.ParseRows[result.Point]("x.csv", []byte("time_s,cc_alpha\n1,2\n"))
	require.ErrorContains(t, err, `no column "cc_alpha"`)
}

func TestInvalidRecords(t *testing.T) {
	for _, tt := range []struct{ file, from, to, want string }{
		{"flows/00-0.csv", "time_s", "time", "00-0.csv:1: not a file of results: must have the columns time_s,"},
		{"flows/00-0.csv", "recovery", "recovery,", "00-0.csv:3: not a file of results: 25 fields: must be 24"},
		{"flows/00-0.csv", ",18446744073709551615,", ",18446744073709551616,", "bytes_acked: strconv"},
		{"flows/00-0.csv", "59.000000001,1,", "59.000000001,9223372036854775808,", "cwnd: \"9223372036854775808\" is too large"},
		{"flows/00-0.csv", ",18446744073709551615,", ",-3,", `bytes_acked: "-3" is negative`},
		{"flows/00-0.csv", "59.000000001", "59.0000000001", "time_s: "},
		{"flows/00-0-segments.csv", ",yes,", ",oui,", `again: "oui": must be "yes" or ""`},
		{"flows/00-0-segments.csv", "1-2;", "1;", "sack: "},
		{"flows/00-0-progress.csv", "0.5", "half", "bytes: "},
		{"links/00-down.csv", ",#,", ",?,", `event: "?": must be +`},
		{"records/00.json", "down", "../down", `link "../down"`},
		{"records/00.json", "{", "[", "records/00.json: not a file of results"},
	} {
		dir := t.TempDir()
		require.NoError(t, result.WriteRecord(dir, "00", record()))
		path := filepath.Join(dir, filepath.FromSlash(tt.file))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		bad := strings.Replace(string(text), tt.from, tt.to, 1)
		require.NotEqual(t, string(text), bad, tt.from)
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		_, err = result.ReadRecord(dir, "00")
		require.ErrorIs(t, err, result.ErrFile, tt.to)
		assert.ErrorContains(t, err, filepath.FromSlash(tt.want), tt.to)
	}
}

func TestWriteFileIsAtomic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b.csv")
	require.NoError(t, result.WriteFile(path, []byte("old")))
	require.NoError(t, result.WriteFile(path, []byte("new")))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "new", string(text))

	// A writer that was killed has left this file.
	left := filepath.Join(dir, "a", ".part-b.csv-123")
	require.NoError(t, os.WriteFile(left, []byte("ne"), 0o600))
	require.NoError(t, result.Sweep(filepath.Dir(path), time.Hour))
	assert.FileExists(t, left, "a process may still write it")
	require.NoError(t, result.Sweep(filepath.Dir(path), 0))
	assert.NoFileExists(t, left)
	assert.FileExists(t, path)
	require.NoError(t, result.Sweep(filepath.Join(dir, "nothing"), 0))

	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	require.Error(t, result.WriteFile(filepath.Join(dir, "folder"), nil))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "a and folder")
}

// The clock of this machine is decades behind the clock of the file system, and then decades ahead.
// It does not affect which files count as old.
func TestSweepUsesTheClockOfTheFileSystem(t *testing.T) {
	dir := t.TempDir()
	used, left := filepath.Join(dir, ".part-used.csv-1"), filepath.Join(dir, ".part-left.csv-2")
	synctest.Test(t, func(t *testing.T) {
		for range 2 {
			for _, path := range []string{used, left} {
				require.NoError(t, os.WriteFile(path, nil, 0o600))
			}
			info, err := os.Stat(left)
			require.NoError(t, err)
			require.NoError(t, os.Chtimes(left, time.Time{}, info.ModTime().Add(-2*time.Hour)))
			require.NoError(t, result.Sweep(dir, time.Hour))
			assert.FileExists(t, used)
			assert.NoFileExists(t, left)
			time.Sleep(100 * 365 * 24 * time.Hour)
		}
	})
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}
