package netem

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// serve takes packets until they add up to a number of bytes. It returns the bytes from each port.
func serve(r *rig, now clock.Time, bytes int) map[byte]int {
	had := map[byte]int{}
	for bytes > 0 {
		p := r.Take(now)
		had[p.data[21]] += len(p.data)
		bytes -= len(p.data)
	}
	return had
}

// separatePorts returns ports whose flows have separate queues.
func separatePorts(r *rig, n int) (ports []byte) {
	q := r.Queue.(*fqCoDel)
	taken := map[uint64]bool{}
	for port := byte(1); len(ports) < n; port++ {
		h := flowHash(flow(port, 0, 100), q.salt) >> 32 * uint64(len(q.flows)) >> 32
		if !taken[h] {
			taken[h] = true
			ports = append(ports, port)
		}
	}
	return ports
}

// RFC 8290 §3: flows that always have data to send get the same number of bytes, whatever the
// lengths of their packets and however many packets they send. At any time the flows differ by at
// most a quantum and a packet.
func TestFQCoDelSharesBytes(t *testing.T) {
	r := newRig(t, FQCoDel{}, 8e6)
	ports := separatePorts(r, 4)
	sizes := map[byte]int{ports[0]: 1500, ports[1]: 500, ports[2]: 64, ports[3]: 1111}
	for _, port := range ports {
		for k := 0; k < 400_000; k += sizes[port] {
			r.offer(1, flow(port, 0, sizes[port]))
		}
	}
	total := map[byte]int{}
	for range 100 {
		for port, n := range serve(r, 1, 4000) {
			total[port] += n
		}
		least, most := math.MaxInt, 0
		for _, port := range ports {
			least, most = min(least, total[port]), max(most, total[port])
		}
		require.LessOrEqual(t, most-least, fqQuantum+1500, "%v", total)
	}
	// No byte is lost: all that were offered are served or still in the queue.
	_, bytes := r.Len()
	assert.Equal(t, 400_000*4, bytes+total[ports[0]]+total[ports[1]]+total[ports[2]]+total[ports[3]]-
		excess(sizes))
	assert.Empty(t, r.drops)
}

// excess returns by how many bytes the flows exceed 400,000 each, in total.
func excess(sizes map[byte]int) (n int) {
	for _, size := range sizes {
		n += (400_000+size-1)/size*size - 400_000
	}
	return n
}

// RFC 8290 §4.2: a new flow goes before all old flows, so a sparse flow waits at most for the
// packet that is being sent. A flow that keeps sending gets only its share.
func TestFQCoDelServesNewFlowsFirst(t *testing.T) {
	r := newRig(t, FQCoDel{}, 8e6)
	ports := separatePorts(r, 12)
	for range 100 {
		for _, bulk := range ports[:10] {
			r.offer(1, flow(bulk, 0, 1500))
		}
	}
	serve(r, 1, 50_000) // these flows are old now
	sparse := ports[10]
	for range 20 {
		r.offer(1, flow(sparse, 0, 200))
		p := r.Take(1)
		require.Equal(t, sparse, p.data[21], "new flows are served first")
		serve(r, 1, 30_000) // after a full round, the flow is new again
	}
	greedy := ports[11]
	for range 100 {
		r.offer(1, flow(greedy, 0, 1500))
	}
	had := serve(r, 1, 11*20*1500)
	assert.InDelta(t, 20*1500, had[greedy], fqQuantum+1500)
}

// RFC 8290 §4.2: a new queue that becomes empty goes to the end of the old queues before it can be
// new again. Otherwise two flows could starve all others, each sending while the other's packet
// leaves.
func TestFQCoDelStarvesNoFlow(t *testing.T) {
	r := newRig(t, FQCoDel{}, 8e6)
	ports := separatePorts(r, 3)
	for range 500 {
		r.offer(1, flow(ports[2], 0, 1500))
	}
	serve(r, 1, 15_000)
	had := map[byte]int{}
	r.offer(1, flow(ports[0], 0, 1500))
	for range 300 {
		p := r.Take(1)
		had[p.data[21]]++
		switch p.data[21] {
		case ports[0]:
			r.offer(1, flow(ports[1], 0, 1500))
		case ports[1]:
			r.offer(1, flow(ports[0], 0, 1500))
		}
	}
	assert.GreaterOrEqual(t, had[ports[2]], 95, "%v", had)
}

// RFC 8290 §3, §4.2: with a quantum of one packet, flows alternate packet by packet.
func TestFQCoDelAlternates(t *testing.T) {
	r := newRig(t, FQCoDel{Quantum: 1500}, 8e6)
	ports := separatePorts(r, 2)
	for range 20 {
		r.offer(1, flow(ports[0], 0, 1500))
		r.offer(1, flow(ports[1], 0, 1500))
	}
	for i := range 40 {
		assert.Equal(t, ports[i%2], r.Take(1).data[21], "packet %d", i)
	}
}

// RFC 8290 §4.1: a queue that becomes active again starts with one quantum, whatever credit it had
// left.
func TestFQCoDelCreditIsReset(t *testing.T) {
	r := newRig(t, FQCoDel{}, 8e6)
	ports := separatePorts(r, 2)
	for range 50 {
		r.offer(1, flow(ports[0], 0, 1400))
	}
	serve(r, 1, 14_000)
	r.offer(1, flow(ports[1], 0, 40))
	serve(r, 1, 14_000) // the flow's queue is empty and removed
	q := r.Queue.(*fqCoDel)
	require.Nil(t, q.newFlows.first)
	r.offer(1, flow(ports[1], 0, 1400))
	assert.Equal(t, fqQuantum, q.newFlows.first.credit)
}

// RFC 8290 §4.1: beyond the limit, the queue with the most bytes drops its oldest packet, not the
// arriving one.
func TestFQCoDelDropsFromTheLongest(t *testing.T) {
	for name, d := range map[string]FQCoDel{"packets": {Packets: 101}, "bytes": {Bytes: 45_064}} {
		r := newRig(t, d, 8e6)
		ports := separatePorts(r, 2)
		for range 45 { // this flow has fewer packets, but more bytes
			r.offer(1, flow(ports[0], 0, 1000))
		}
		for range 80 {
			r.offer(1, flow(ports[1], 0, 64))
		}
		require.NotEmpty(t, r.drops, name)
		for i, d := range r.drops {
			assert.Equal(t, dropped{1, uint64(i), Head}, d,
				"%s: oldest packet of the longest queue", name)
		}
		packets, bytes := r.Len()
		d = d.withDefaults()
		assert.True(t, packets <= d.Packets && bytes <= d.Bytes, name)
		assert.True(t, packets == d.Packets || bytes > d.Bytes-1000,
			"%s: no more drops than needed", name)
	}
}

// RFC 8290 §5.2.6: FQ-CoDel with a single queue equals CoDel, for drops and for marks. It sends and
// drops the same packets at the same times.
func TestFQCoDelWithOneQueueIsCoDel(t *testing.T) {
	for _, ecn := range []bool{false, true} {
		one := newRig(t, FQCoDel{Flows: 1, Packets: 1 << 15, ECN: ecn}, 8e6)
		other := newRig(t, CoDel{Packets: 1 << 15, ECN: ecn}, 8e6)
		a, b := flood(one, 1, milli/2, 3*time.Second), flood(other, 1, milli/2, 3*time.Second)
		require.Equal(t, b, a)
		assert.Equal(t, other.drops, one.drops)
		assert.Equal(t, other.marks, one.marks)
		assert.Equal(t, ecn, one.marks > 0)
		assert.Equal(t, !ecn, len(one.drops) > 10)
	}
}

// RFC 8290 §3 and Jain's index: flows that together send more than the link carries, at rates in
// the ratio 1 to 4, get equal shares. Each queue's wait is CoDel's.
func TestFQCoDelIsFair(t *testing.T) {
	r := newRig(t, FQCoDel{}, 8e6)
	ports := separatePorts(r, 4)
	had := map[byte]float64{}
	free := clock.Time(1)
	for tick := range 60_000 {
		now := clock.Time(1).Add(time.Duration(tick) * milli)
		for n, _ := r.Len(); n > 0 && free <= now; n, _ = r.Len() {
			had[r.Take(free).data[21]]++
			free = free.Add(milli)
		}
		free = max(free, now)
		for k, port := range ports {
			if tick%3 == 0 {
				for range k + 1 {
					r.offer(now, flow(port, 0, 1000))
				}
			}
		}
	}
	sum, squares := 0.0, 0.0
	for _, x := range had {
		sum += x
		squares += x * x
	}
	assert.Greater(t, sum*sum/(4*squares), 0.999)
	assert.Len(t, had, 4)
}

// RFC 8290 §4.1: the hash of a flow's five-tuple, which a sender cannot predict, spreads flows
// evenly. Fragments are hashed by addresses and protocol.
func TestFlowHash(t *testing.T) {
	const flows, queues = 64_000, 64
	counts := make([]float64, queues)
	r := rand.New(rand.NewPCG(4, 4))
	for i := range flows {
		b := flow(0, 0, 60)
		b[14], b[15], b[20], b[21] = byte(i>>8), byte(i), byte(r.Uint32()), byte(r.Uint32())
		counts[flowHash(b, 99)>>32*queues>>32]++
	}
	chi := 0.0
	for _, n := range counts {
		chi += (n - flows/queues) * (n - flows/queues) / (flows / queues)
	}
	assert.InDelta(t, queues-1, chi, 4*math.Sqrt(2*(queues-1)), "χ² of %d queues", queues)

	six := append([]byte{0x60, 0, 0, 0, 0, 20, 6, 64}, make([]byte, 52)...)
	for at := range six {
		b := append([]byte(nil), six...)
		b[at] ^= 1
		if at == 0 {
			continue // another IP version
		}
		identifies := at == 6 || at >= 8 && at < ip6Header+4
		assert.Equal(t, identifies, flowHash(six, 1) != flowHash(b, 1), "byte %d of IPv6", at)
	}

	base := flow(7, 0, 60)
	for name, at := range map[string]int{
		"source": 15, "destination": 19, "protocol": 9, "source port": 21, "destination port": 23,
	} {
		b := append([]byte(nil), base...)
		b[at] ^= 23 ^ 17 // change to another protocol with ports
		if name == "protocol" {
			b[at] = 6
		}
		assert.NotEqual(t, flowHash(base, 1), flowHash(b, 1), name)
	}
	for name, at := range map[string]int{"TOS": 1, "length": 3, "identification": 5, "TTL": 8, "text": 30} {
		b := append([]byte(nil), base...)
		b[at] ^= 0xff
		assert.Equal(t, flowHash(base, 1), flowHash(b, 1), name)
	}
	assert.NotEqual(t, flowHash(base, 1), flowHash(base, 2), "the hash depends on the salt")
	first, later := append([]byte(nil), base...), append([]byte(nil), base...)
	first[6], later[7] = 0x20, 9
	later[20] = 77 // a later fragment has payload there
	assert.Equal(t, flowHash(first, 1), flowHash(later, 1),
		"fragments of a datagram have the same hash")
	assert.Equal(t, flowHash([]byte{1}, 1), flowHash([]byte("what is this? not IPv4"), 1))
	assert.NotPanics(t, func() { flowHash(base[:22], 1) })
}

// RFC 8290 §5.2.1 to §5.2.5: an interval of 100 ms, a target of 5 ms, 10240 packets, a quantum
// of 1514 bytes and 1024 queues.
func TestFQCoDelDefaults(t *testing.T) {
	r := newRig(t, FQCoDel{}, 8e6)
	q := r.Queue.(*fqCoDel)
	assert.Equal(t, 100*milli, q.law.interval, "RFC 8290 §5.2.1")
	assert.Equal(t, 5*milli, q.law.target, "RFC 8290 §5.2.2")
	assert.Equal(t, 10240, q.room.packets, "RFC 8290 §5.2.3")
	assert.Equal(t, 1514, q.quantum, "RFC 8290 §5.2.4")
	assert.Len(t, q.flows, 1024, "RFC 8290 §5.2.5")
}

func TestFQCoDelInvalidConfigs(t *testing.T) {
	for name, bad := range map[string]FQCoDel{
		"flows": {Flows: 1 << 20}, "quantum": {Quantum: -1}, "target": {Target: time.Second},
		"bound": {Bytes: -1},
	} {
		assert.ErrorIs(t, bad.Validate(), ErrConfig, name)
	}
}

// RFC 3168 §5, RFC 8200 §7: the ECN field of IPv6 is the last two bits of the traffic class. The
// IPv6 header has 40 bytes, and the transport's headers follow it.
func TestIPv6MarksAndHeaders(t *testing.T) {
	for ecn, marks := range []bool{false, true, true, true} {
		b := append([]byte{0x6a, 0x8f | byte(ecn)<<4, 1, 2, 0, 28, 17, 64}, make([]byte, 60)...)
		before := append([]byte(nil), b...)
		assert.Equal(t, marks, markECN(b), "ECN %d", ecn)
		if marks {
			before[1] |= 0x30
		}
		assert.Equal(t, before, b)
		assert.Equal(t, 48, headerLen(b))
	}
}
