package internet

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A test that fails with random faults is run again with fewer faults, until one is left. Here the
// client does not reconnect, so a single crash of the server makes the test fail.
func TestShrinking(t *testing.T) {
	run := func(args ...string) string {
		cmd := exec.Command(os.Args[0], append([]string{"-test.run=^TestPlanted$"}, args...)...)
		cmd.Env = append(os.Environ(), "INTERNET_PLANTED=1")
		out, err := cmd.CombinedOutput()
		require.Error(t, err, "%s", out)
		return string(out)
	}
	out := run("-internet.seed=3")
	found := regexp.MustCompile(`it fails with 1 of 10 faults:
 +at [\d.]+m?s, for [\d.]+m?s: (?:server|client) crashes
 *to repeat this: (?:GOMAXPROCS=\d+ )?go test -run '\^TestPlanted\$' -count=1 ` +
		`(-internet.seed=3) (-internet.faults=\d)\n`).FindStringSubmatch(out)
	require.NotNil(t, found, out)
	assert.Contains(t, run("-internet.faults=10"), "-internet.faults=10: must be numbers below 10")
	again := run(found[1:]...)
	assert.Contains(t, again, "the server does not answer")
	assert.NotContains(t, again, "it fails with")
}

func TestPlanted(t *testing.T) {
	if os.Getenv("INTERNET_PLANTED") != "1" {
		t.Skip("it fails: for TestShrinking")
	}
	Test(t, "link server r\nlink r client", func(t *testing.T, w *World) {
		serve(w.Host("server"))
		c, err := w.Host("client").Dial("tcp", "server:7")
		require.NoError(t, err)
		defer c.Close()
		w.Faults(10, time.Minute)
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for range 100 {
			require.NoError(t, ask(c, time.Minute), "the server does not answer")
			<-second.C
		}
	})
}

// One seed always results in the same faults; two seeds result in different ones.
func TestFaultsFollowTheSeed(t *testing.T) {
	plan := func(seed uint64) (list []string) {
		synctest.Test(t, func(t *testing.T) {
			w := load(t, "link a r\nlink r b", seed)
			w.Faults(20, time.Minute)
			for i := range w.planned {
				list = append(list, w.planned[i].String())
			}
		})
		return list
	}
	five := plan(5)
	assert.Equal(t, five, plan(5))
	assert.NotEqual(t, five, plan(6))
}

// Faults of all kinds overlap, also on hosts that are down, and all of them end.
func TestFaultsOfAllKinds(t *testing.T) {
	kinds := []FaultKind{Cuts, Losses, Crashes, Pauses, Resets, Skews}
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			w := load(t, "link server r\nlink r client", seed)
			w.AllowLeaks()
			serve(w.Host("server"))
			w.Faults(60, time.Minute, kinds...)
			var all string
			for i := range w.planned {
				all += w.planned[i].what + "\n"
			}
			for _, want := range []string{"is cut", "loses", "crashes", "pauses", "are reset", "gains"} {
				assert.Contains(t, all, want)
			}
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if c, err := w.Host("client").DialContext(ctx, "tcp", "server:7"); err == nil {
					_ = ask(c, time.Second) // fails during some faults
					_ = c.Close()
				}
				cancel()
			}
			time.Sleep(time.Minute)
			synctest.Wait() // because the race detector does not know virtual time
			for _, h := range w.hosts {
				assert.False(t, h.down || h.paused, h.name)
				assert.Equal(t, time.Now(), h.Now(), h.name)
			}
			c, err := w.Host("client").Dial("tcp", "server:7")
			require.NoError(t, err)
			require.NoError(t, ask(c, time.Minute))
		})
	}
}

func TestShrink(t *testing.T) {
	runs := 0
	fails := func(list []int) bool {
		runs++
		return slices.Contains(list, 3) && slices.Contains(list, 17)
	}
	all := make([]int, 40)
	for i := range all {
		all[i] = i
	}
	assert.Equal(t, []int{3, 17}, shrink(all, fails))
	assert.Less(t, runs, 80)
	assert.Empty(t, shrink(all, func([]int) bool { return true }), "it fails without faults")
	assert.Equal(t, all, shrink(all, func([]int) bool { return false }), "it does not fail again")
}
