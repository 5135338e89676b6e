// Package objects is the assignment of founding document 003 in virtual time: ten small
// objects and ten large ones, text made of random bytes, go from a server to a client, who
// compares every byte, where the document compares MD5 digests; by the reliable data transfer
// of internal/rdt, and by TCP in the ways that one may use it.
//
// make.go makes the objects and says in which order; rdt.go is the arm of that name, tcp.go
// the others: one connection with the objects in the document's order, large-0, small-0,
// large-1 and so on; one connection on which their chunks take turns; and a connection for
// each. world_test.go is two hosts and what is between them.
//
// Time counts from the client's first packet to the last byte of the last object, without the
// interpreter's start, which the document's command measures, too.
package objects
