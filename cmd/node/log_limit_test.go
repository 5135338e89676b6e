package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLogLimitsRecordsPerCause checks that a log accepts a few records per second with one
// cause. The log reports how many it dropped, even if no record follows.
func TestLogLimitsRecordsPerCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := (&logFlags{format: "text"}).newLog(&out, "A")
		for range 20_000 {
			l.Info("test", "text", "packet from 10.0.0.2")
		}
		l.Warn("another cause")
		time.Sleep(2 * time.Second) // virtual time: the test does not wait
		synctest.Wait()
		text := out.String()
		assert.Equal(t, logRate, strings.Count(text, "packet from"))
		assert.Equal(t, 1, strings.Count(text, "another cause"))
		assert.Contains(t, text, `msg="records dropped" node=A cause=test count=19980`)
		assert.Less(t, len(text), 5000)
		l.Info("test", "text", "packet from 10.0.0.2")
		assert.Contains(t, out.String()[len(text):], "packet from", "another second")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, 1, strings.Count(out.String(), "records dropped"))
	})
}

// TestLogFileIsBounded checks that the log keeps its newest records, without cutting one, and
// lines that other writers append.
func TestLogFileIsBounded(t *testing.T) {
	const most = 4096
	path := filepath.Join(t.TempDir(), "A.log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	require.NoError(t, err)
	defer f.Close()
	l := boundLog(f, most)
	for i := range 1000 {
		_, err := fmt.Fprintf(l, "record %d\n", i)
		require.NoError(t, err)
	}
	_, err = f.WriteString("panic: a line that the log did not write\n")
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(text), most)
	assert.Greater(t, len(text), most/4)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	assert.Equal(t, "record 999", lines[len(lines)-2])
	for i, line := range lines[:len(lines)-1] {
		assert.Equal(t, fmt.Sprint("record ", 1001-len(lines)+i), line)
	}

	only, err := os.OpenFile(path, os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer only.Close()
	assert.Same(t, only, boundLog(only, most), "a file that cannot be read is left alone")
}
