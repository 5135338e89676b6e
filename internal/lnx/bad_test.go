package lnx_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

var update = flag.Bool("update", false, "write the files that the tests compare with")

// TestBadFiles compares all messages about invalid files with golden files.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.lnx")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".lnx")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			_, err = lnx.Parse(name+".lnx", text)
			require.Error(t, err)
			wantFile := strings.TrimSuffix(file, ".lnx") + ".want"
			if *update {
				require.NoError(t, os.WriteFile(wantFile, []byte(err.Error()+"\n"), 0o644))
			}
			want, readErr := os.ReadFile(wantFile)
			require.NoError(t, readErr)
			assert.Equal(t, string(want), err.Error()+"\n")
		})
	}
}

func TestErrorsAreFoundByErrorsAs(t *testing.T) {
	_, err := lnx.Parse("x/R.lnx", []byte("interface if0 10.0.0.1/24 127.0.0.1:5000\nrouting rap\n"))
	var one *lnx.Error
	require.ErrorAs(t, err, &one)
	assert.Equal(t, lnx.Error{
		File: "x/R.lnx", Line: 2, Col: 9,
		Text: "rap", Msg: `"rap" is not a protocol (did you mean rip?)`,
		Want: "rip, rip2, ripng, static or none; `rip ripng` runs both", Source: "routing rap",
	}, *one)
	var all lnx.Errors
	require.ErrorAs(t, err, &all)
	assert.Len(t, all, 1)
}

func TestErrorsAreInFileOrder(t *testing.T) {
	// The parser finds a neighbor outside its subnet only after all other errors.
	_, err := lnx.Parse("R.lnx", []byte(
		"interface if0 10.0.0.1/24 127.0.0.1:5000\n"+
			"neighbor 10.0.1.2 at 127.0.0.1:5001 via if0\n"+
			"route x via y\n"))
	var all lnx.Errors
	require.ErrorAs(t, err, &all)
	var places []string
	for _, e := range all {
		places = append(places, fmt.Sprintf("%d:%d", e.Line, e.Col))
	}
	assert.Equal(t, []string{"2:10", "3:7", "3:13"}, places)
}

func TestErrorsAreBounded(t *testing.T) {
	_, err := lnx.Parse("R.lnx", []byte(strings.Repeat("neighbor x\n", 5000)))
	var all lnx.Errors
	require.ErrorAs(t, err, &all)
	require.Len(t, all, 101)
	assert.Equal(t, "R.lnx:100:11: more errors follow; these are the first 100", all[100].Error())
}

func TestFilesAreBounded(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"bytes": {
			strings.Repeat("# much ado\n", 100_000),
			"R.lnx: the file has 1100000 bytes; expected at most 1048576",
		},
		"lines": {
			strings.Repeat("\n", 20_000),
			"R.lnx: the file has 20001 lines; expected at most 10000",
		},
		"characters": {
			"# " + strings.Repeat("é", 499) + "\ninterface if0 10.0.0.1/24 127.0.0.1:5000\n",
			"R.lnx:1:501: the line has 501 characters; expected at most 500",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := lnx.Parse("R.lnx", []byte(test.text))
			require.EqualError(t, err, test.want)
		})
	}
}

func TestManyInterfacesAreRefused(t *testing.T) {
	var b strings.Builder
	for i := range 1002 {
		fmt.Fprintf(&b, "interface if%d 10.%d.%d.1/24 127.0.0.1:%d\n", i, i/256, i%256, 5000+i)
	}
	_, err := lnx.Parse("R.lnx", []byte(b.String()))
	require.EqualError(t, err, "R.lnx:1001:11: too many interfaces; expected at most 1000\n"+
		"    interface if1000 10.3.232.1/24 127.0.0.1:6000\n"+
		"              ^^^^^^")
}
