// Package sim is a world of many stacks in virtual time: the driver of the very
// code that a node runs on the wire, with time that passes as fast as the machine
// can count it, and the same way every time.
//
// A World holds hosts, the two directions of the wires between them, and tasks.
// Each of them is an actor with an instant at which it is due; the world goes from
// instant to instant and lets the earliest act, ties in the order in which they
// were set. One seed decides everything that is random: two runs of one seed have
// the same log, and Hash says so. Each part draws from a stream that its name chooses (a
// wire's is that of its two ends), so that what is added to a world, or another algorithm
// on it, leaves the luck of the rest as it is.
//
// world.go is the loop, agenda.go its queue, host.go a stack with its connections,
// wire.go what joins two of them, conn.go what an application sees of a connection and
// udp.go of a UDP socket, bulk.go an application that moves a pattern both ways and
// checks every byte, line.go worlds ready made. What a run is recorded by: log.go is what
// the hash digests, as lines; tap.go a host's packets, and pcapng of them; trace.go its
// TCP segments by the streams' offsets; and Conn.SetProbe the state of a connection.
package sim
