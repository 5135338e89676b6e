// Package trace has mahimahi's two file formats: traces, which say when a link may send, and
// logs, which say what a link did.
//
// trace.go reads and writes traces, generate.go makes them, info.go says what is in one,
// convert.go makes them of other people's formats, log.go reads and writes logs, digest.go says
// what is in one.
package trace
