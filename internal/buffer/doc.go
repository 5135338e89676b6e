// Package buffer holds data on its way between an application and a link: the ring of a stream's
// bytes (Ring), the set of byte ranges that arrived out of order (Ranges), and trains of packets
// that a stack passes to a link in one call (Train, Batch).
package buffer
