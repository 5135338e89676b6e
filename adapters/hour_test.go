package adapters

import (
	"runtime"
	"testing"
	"time"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internet"
)

// An hour of a cluster of five with 1 % loss on each link, a write a second and a crash of the
// leader every five minutes. One thread runs the test: the goroutines of a bubble take turns, and
// waking a second thread would only cost time.
func TestRaftHour(t *testing.T) {
	testenv.NeedLong(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const period, pause = 5 * time.Minute, time.Second
	for name, run := range map[string]func(*testing.T, *internet.World){
		"etcd": func(t *testing.T, w *internet.World) {
			etcdFor(t, etcdCluster(t, w, 5), time.Hour, period, pause)
		},
		"hashicorp": func(t *testing.T, w *internet.World) {
			raftFor(t, w, time.Hour, period, pause)
		},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			internet.Test(t, star(5, "delay 5ms loss 1%"), run)
			t.Logf("real time: %v", time.Since(began))
		})
	}
}
