package node

import (
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/link"
)

// report prints the median and the 99th percentile.
func report(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	us := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))]) / float64(time.Microsecond)
	}
	b.ReportMetric(us(0.5), "p50-µs")
	b.ReportMetric(us(0.99), "p99-µs")
	b.ReportMetric(0, "ns/op") // removes ns/op, which would mostly measure the pauses
}

// settle is how long the benchmark waits before each wake-up, so that the loop is asleep.
const settle = 200 * time.Microsecond

// BenchmarkWakeup measures the time from just before a ring or a datagram until the loop runs.
func BenchmarkWakeup(b *testing.B) {
	for name, w := range waiters(b) {
		b.Run("doorbell/"+name, func(b *testing.B) { benchDoorbell(b, w) })
		b.Run("datagram/"+name, func(b *testing.B) { benchDatagram(b, w) })
	}
}

func benchDoorbell(b *testing.B, w waiter) {
	b.Helper()
	woken := make(chan time.Time)
	var stop atomic.Bool
	go func() {
		defer close(woken)
		for !stop.Load() {
			_, _ = w.Wait(-1, nil)
			woken <- time.Now()
		}
	}()
	var took []time.Duration
	for b.Loop() {
		time.Sleep(settle)
		start := time.Now()
		w.Ring()
		at := <-woken
		for at.Before(start) { // the loop repeats a Wait that returned too early
			at = <-woken
		}
		took = append(took, at.Sub(start))
	}
	stop.Store(true)
	for open := true; open; _, open = <-woken {
		w.Ring()
	}
	report(b, took)
}

func benchDatagram(b *testing.B, w waiter) {
	b.Helper()
	offload := link.OffloadAuto
	if _, fed := w.(*feedWaiter); fed {
		offload = link.OffloadPlain
	}
	from, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(b, err)
	defer from.Close()
	d, err := link.Open(link.Config{
		Host: "127.0.0.1", Offload: offload,
		Interfaces: []link.Interface{{Name: "if0", Neighbors: []link.Neighbor{{
			Host: "127.0.0.1", Port: from.LocalAddr().(*net.UDPAddr).AddrPort().Port(),
		}}}},
	})
	require.NoError(b, err)
	defer d.Close()
	if d.FD() < 0 {
		d.Feed(w.Feed(0, w.Ring))
	} else {
		require.NoError(b, w.Add(d.FD(), 0))
	}
	sent := make(chan time.Time)
	next := make(chan struct{})
	go func() {
		packet := make([]byte, 64)
		for range next {
			time.Sleep(settle)
			at := time.Now()
			_, _ = from.WriteToUDPAddrPort(packet, d.Info().Local)
			sent <- at
		}
	}()
	frames, tokens := make([]buffer.Frame, 16), make([]int, 0, 4)
	var took []time.Duration
	for b.Loop() {
		next <- struct{}{}
		n := 0
		var at time.Time
		for n == 0 {
			_, err = w.Wait(-1, tokens)
			at = time.Now()
			require.NoError(b, err)
			n, _ = d.ReadBatch(frames)
		}
		took = append(took, at.Sub(<-sent))
	}
	close(next)
	report(b, took)
}

// BenchmarkTimerError measures how late a Wait with a timeout returns.
func BenchmarkTimerError(b *testing.B) {
	for name, w := range waiters(b) {
		for _, asked := range []time.Duration{
			50 * time.Microsecond, 200 * time.Microsecond, 900 * time.Microsecond,
		} {
			b.Run(name+"/"+asked.String(), func(b *testing.B) {
				var late []time.Duration
				for b.Loop() {
					start := time.Now()
					_, _ = w.Wait(asked, nil)
					late = append(late, time.Since(start)-asked)
				}
				report(b, late)
			})
		}
	}
}

// BenchmarkHandOver measures the time from waking up an application's goroutine until it runs. The
// loop goes to sleep at once. The other CPUs are idle, or all but one are busy.
func BenchmarkHandOver(b *testing.B) {
	for name, w := range waiters(b) {
		b.Run(name+"/idle", func(b *testing.B) { benchHandOver(b, w, 0) })
		b.Run(name+"/busy", func(b *testing.B) { benchHandOver(b, w, runtime.GOMAXPROCS(0)-1) })
	}
}

func benchHandOver(b *testing.B, w waiter, hogs int) {
	b.Helper()
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range hogs {
		wg.Go(func() {
			for x := 0; !stop.Load(); x++ {
			}
		})
	}
	var asked atomic.Int64
	app := make(chan time.Time, 1)
	wg.Go(func() {
		for seen := int64(0); !stop.Load(); {
			if n := asked.Load(); n != seen {
				seen = n
				app <- time.Now()
			}
			_, _ = w.Wait(-1, nil)
		}
	})
	var took []time.Duration
	for b.Loop() {
		time.Sleep(settle)
		asked.Add(1)
		w.Ring()
		woken := <-app
		took = append(took, time.Since(woken))
	}
	stop.Store(true)
	w.Ring()
	wg.Wait()
	report(b, took)
}

// BenchmarkRing measures a ring while the loop is awake.
func BenchmarkRing(b *testing.B) {
	for name, w := range waiters(b) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				w.Ring()
			}
		})
	}
}
