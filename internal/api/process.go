package api

import "runtime/metrics"

// process adds the resource usage of this process, under the names of Prometheus's client
// libraries. The server of a single node runs in the node's process.
func (e *exposition) process() {
	samples := []metrics.Sample{
		{Name: "/sched/goroutines:goroutines"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"},
	}
	metrics.Read(samples)
	for i, m := range []struct{ name, help string }{
		{"go_goroutines", "Goroutines of this process."},
		{"go_memstats_alloc_bytes", "Bytes of heap objects."},
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

// systemUse is the resource usage that the system reports. Zero means unknown.
type systemUse struct{ descriptors, mostDescriptors, resident uint64 }
