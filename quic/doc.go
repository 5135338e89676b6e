// Command node-quic runs either end of a QUIC flow in an experiment that `node lab run --real`
// plays. It transfers the objects of founding document 003, one stream for each, with quic-go over
// the net.PacketConn of a tidepool node: the same objects cross the same path by RDT, TCP and QUIC.
// The lab starts it and controls it on its standard input; see internal/lab/emulation.
//
//	cd quic && go build -o ../bin/node-quic .
//
// It is a module of its own, so that tidepool does not depend on quic-go.
//
// transfer.go transfers objects over any net.PacketConn; arm.go does so for the lab.
package main
