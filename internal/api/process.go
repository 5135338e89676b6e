package api

import (
	"runtime/metrics"
)

// process adds what this process uses, under the names that Prometheus's own clients have for it. A
// node's process is described where the node itself is asked.
func (e *exposition) process() {
	samples := []metrics.Sample{
		{Name: "/sched/goroutines:goroutines"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"},
	}
	metrics.Read(samples)
	for i, m := range []struct{ name, help string }{
		{"go_goroutines", "Goroutines of this process."},
		{"go_memstats_alloc_bytes", "Bytes of the objects on the heap."},
		{"go_memstats_sys_bytes", "Bytes of memory obtained from the system."},
	} {
		e.add(m.name, gauge, m.help, float64(samples[i].Value.Uint64()))
	}
	use := usage()
	for _, m := range []struct {
		name, help string
		value      uint64
	}{
		{"process_open_fds", "Open file descriptors.", use.descriptors},
		{"process_max_fds", "Maximum number of open file descriptors.", use.mostDescriptors},
		{"process_resident_memory_bytes", "Bytes of resident memory.", use.resident},
	} {
		if m.value > 0 {
			e.add(m.name, gauge, m.help, float64(m.value))
		}
	}
}

// systemUse is what the system says of this process; 0: it does not say.
type systemUse struct{ descriptors, mostDescriptors, resident uint64 }
