package link

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// BenchmarkUDPTrain moves trains of 46 packets of 1400 bytes from one socket to another. One
// goroutine serves both, and sends fewer trains at a time than the receive queue holds. One
// operation is one train.
func BenchmarkUDPTrain(b *testing.B) {
	for _, mode := range modes() {
		b.Run(mode.String(), func(b *testing.B) {
			benchTrains(b, mode, equal(46, 1400, 0))
		})
	}
}

// BenchmarkUDPPacket is like BenchmarkUDPTrain, with trains of one packet of 40 bytes.
func BenchmarkUDPPacket(b *testing.B) {
	for _, mode := range modes() {
		b.Run(mode.String(), func(b *testing.B) { benchTrains(b, mode, []int{40}) })
	}
}

func benchTrains(b *testing.B, mode Offload, lengths []int) {
	b.Helper()
	sender, receiver := pair(b, mode)
	r := rand.New(rand.NewPCG(1, 1))
	batch := make([]buffer.Train, 8)
	for i := range batch {
		batch[i] = train(r, 3, addrB, lengths...)
	}
	frames := make([]buffer.Frame, 64)
	ready := make(chan struct{}, 1)
	receiver.Feed(func() {
		select {
		case ready <- struct{}{}:
		default:
		}
	})
	start := time.Now()
	sent := 0
	for b.Loop() {
		if sent++; sent%len(batch) != 0 {
			continue
		}
		if n, err := sender.WriteBatch(batch); n < len(batch) {
			b.Fatal(n, err)
		}
		for got := 0; got < len(batch)*len(lengths); {
			n, err := receiver.ReadBatch(frames)
			if err != nil && receiver.FD() < 0 {
				<-ready
			}
			for _, f := range frames[:n] {
				got += (len(f.Data) + f.Size - 1) / f.Size
			}
		}
	}
	packets := float64(sent * len(lengths))
	seconds := time.Since(start).Seconds()
	b.SetBytes(int64(batch[0].Bytes))
	b.ReportMetric(packets/seconds/1000, "kpackets/s")
}
