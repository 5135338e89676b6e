// Command node-quic is both ends of a flow of QUIC in an experiment that `node lab run --real`
// plays: founding document 003's objects, a stream for each, by quic-go over the net.PacketConn of
// a tidepool node, so that the same objects cross the same path as by RDT and by TCP. The lab
// starts it and tells it on its standard input what to do; see internal/lab/emulation.
//
//	cd quic && go build -o ../bin/node-quic .
//
// It lives in a module of its own, so that quic-go is no requirement of the product.
//
// transfer.go moves objects over any net.PacketConn, arm.go does so for the lab.
package main
