package internet

import (
	"flag"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// star is a network with loss, jitter and a queue.
const star = `
	link a r delay 10ms loss 1%
	link r b delay 5ms rate 5mbit
	link r c delay 3ms 1ms
`

// single is a program with one goroutine.
func single(t *testing.T, w *World) {
	w.AllowLeaks()
	ln, err := w.Host("a").Listen("tcp", ":7")
	require.NoError(t, err)
	c, err := w.Host("b").Dial("tcp", "a:7")
	require.NoError(t, err)
	s, err := ln.Accept()
	require.NoError(t, err)
	exchange := func(from, to net.Conn, size int) {
		_, err := from.Write(make([]byte, size))
		require.NoError(t, err)
		_, err = io.ReadFull(to, make([]byte, size))
		require.NoError(t, err)
	}
	for i := range 300 {
		exchange(c, s, 1+1000*(i%7))
		exchange(s, c, 6)
		<-time.After(10 * time.Millisecond)
	}
}

// several is a program with several goroutines: six clients and the servers. They run freely while
// hosts crash and links fail.
func several(t *testing.T, w *World) {
	names := []string{"a", "b", "c"}
	for _, name := range names {
		serve(w.Host(name))
	}
	w.Faults(5, time.Minute)
	var clients sync.WaitGroup
	for i, from := range names {
		for k, to := range names {
			if from != to {
				pause := time.Duration(10+20*i+7*k) * time.Millisecond
				clients.Go(func() { client(w.Host(from), to, pause) })
			}
		}
	}
	clients.Wait()
}

func client(h *Host, to string, pause time.Duration) {
	for range 5 {
		c, err := h.Dial("tcp", to+":7")
		if err != nil {
			<-time.After(time.Second)
			continue
		}
		for range 50 {
			if ask(c, 10*time.Second) != nil {
				break
			}
			<-time.After(pause)
		}
		_ = c.Close()
	}
}

func hashOf(t *testing.T, seed uint64, program func(*testing.T, *World)) (sum string) {
	synctest.Test(t, func(t *testing.T) {
		w := load(t, star, seed)
		program(t, w)
		sum = w.Hash()
	})
	return sum
}

// For a program with one goroutine, the seed determines every packet.
func TestReruns(t *testing.T) {
	first := hashOf(t, 1, single)
	for range 4 {
		assert.Equal(t, first, hashOf(t, 1, single))
	}
	assert.NotEqual(t, first, hashOf(t, 2, single))
}

var reruns = flag.Int("reruns", 0, "how often TestRerunRate runs each program")

// With -v, TestRerunRate prints the share of reruns that have the most frequent hash.
func TestRerunRate(t *testing.T) {
	if *reruns == 0 {
		t.Skip("it measures: -reruns=100")
	}
	for name, program := range map[string]func(*testing.T, *World){
		"one goroutine": single, "several goroutines": several,
	} {
		sums, most := map[string]int{}, 0
		for range *reruns {
			sum := hashOf(t, 1, program)
			sums[sum]++
			most = max(most, sums[sum])
		}
		fmt.Printf("%s: %d of %d reruns are equal, %d different\n", name, most, *reruns, len(sums))
	}
}

// driven runs two state machines driven by a loop. They have no goroutines and poll their
// connections. Each wait is a step of the network's time.
func driven(t *testing.T, w *World) (steps int) {
	t.Helper()
	a, b := w.NewConnPair("a", "b")
	w.At(10*time.Second, w.Link("a", "r").Cut)
	w.At(15*time.Second, w.Link("a", "r").Restore)
	token := []byte{0}
	_, err := a.Write(token)
	require.NoError(t, err)
	for last := 0; last < 200; steps++ {
		for _, c := range []*Conn{a, b} {
			if !c.CanRead() {
				continue
			}
			_, err := io.ReadFull(c, token)
			require.NoError(t, err)
			token[0]++
			last = int(token[0])
			_, err = c.Write(token)
			require.NoError(t, err)
		}
		<-time.After(10 * time.Millisecond)
	}
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	return steps
}

// A driven program has the same steps and the same packets in each run.
func TestDriven(t *testing.T) {
	run := func(seed uint64) (steps int, sum string) {
		synctest.Test(t, func(t *testing.T) {
			w := load(t, star, seed)
			steps = driven(t, w)
			sum = w.Hash()
		})
		return steps, sum
	}
	steps, sum := run(1)
	for range 3 {
		again, sumAgain := run(1)
		assert.Equal(t, steps, again)
		assert.Equal(t, sum, sumAgain)
	}
	_, other := run(2)
	assert.NotEqual(t, sum, other)
}
