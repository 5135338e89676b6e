package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestALogTakesAFewRecordsOfACause a second, and says how many it left out, though nothing follows.
func TestALogTakesAFewRecordsOfACause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := (&logFlags{format: "text"}).newLog(&out, "A")
		for range 20_000 {
			l.Info("packet from 10.0.0.2", "event", "test-received")
		}
		l.Warn("another cause")
		time.Sleep(2 * time.Second) // in virtual time
		text := out.String()
		assert.Equal(t, logRate, strings.Count(text, "packet from"))
		assert.Equal(t, 1, strings.Count(text, "another cause"))
		assert.Contains(t, text, `msg="records left out" node=A cause=test-received count=19980`)
		assert.Less(t, len(text), 5000)
		l.Info("packet from 10.0.0.2", "event", "test-received")
		assert.Contains(t, out.String()[len(text):], "packet from", "another second")
		time.Sleep(2 * time.Second)
		assert.Equal(t, 1, strings.Count(out.String(), "left out"))
	})
}
