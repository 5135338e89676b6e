// Command node-quic runs either end of a QUIC flow in an experiment run by `node lab run --real`.
// It transfers the objects of founding document 003, each on its own stream, with quic-go over the
// net.PacketConn of a tidepool node. So the same objects cross the same path by RDT, TCP and QUIC.
// The lab starts the command and controls it on its standard input; see internal/lab/emulation.
//
//	cd quic && go build -o ../bin/node-quic .
//
// It is a module of its own, so that tidepool does not depend on quic-go.
//
// transfer.go transfers objects over any net.PacketConn; arm.go is the lab's side of such a
// transfer.
package main
