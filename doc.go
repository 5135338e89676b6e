// Package tidepool puts hosts and routers of an IPv4 internet into a program:
// each with its own addresses, routes and TCP, none of them the machine's. What
// it gives out are net.Conns and net.Listeners, so that net/http, crypto/tls or
// an SSH library run across such a network without knowing.
//
// A Node is one host or router. Open makes one from a Config, OpenFile from an
// .lnx file:
//
//	a, b := tidepool.Pipe(0)
//	server, err := tidepool.Open(tidepool.Config{Interfaces: []tidepool.Interface{
//		{Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: a},
//	}})
//	client, err := tidepool.Open(tidepool.Config{Interfaces: []tidepool.Interface{
//		{Addr: netip.MustParsePrefix("10.0.0.2/24"), Link: b},
//	}})
//	ln, err := server.Listen("tcp", "10.0.0.1:80")
//	conn, err := client.Dial("tcp", "10.0.0.1:80")
//
// An interface's link is a Pipe within the process, a UDP socket that carries the
// packets to another process or machine, or any io.ReadWriteCloser that reads and
// writes a packet a call: a tunnel, a TUN device, a program of your own. The other
// end of a Pipe need not be a node either: Read takes the next packet that the
// node sends, Write gives it one.
//
// Every method may be called by several goroutines at once. What waits ends when its
// deadline passes or its connection, listener or node is closed, and a node that is
// closed leaves no goroutine or timer behind. Errors are *net.OpErrors, net.Errors as
// far as time is concerned, in which errors.Is finds net.ErrClosed,
// os.ErrDeadlineExceeded and the system's numbers, such as syscall.ECONNREFUSED.
//
// Beside Node's methods for listening and dialing, a Dialer chooses the local address
// and port, Forward and ForwardUDP take what is for any address, Conn.Info and
// Conn.Probe show what TCP does, the network "rcp" is a transport that minds losses less
// and others' traffic not at all, ServeRDT and FetchRDT move many objects in one flow of
// UDP, and Vir has the socket calls of founding document 004.
//
// Time is the system's unless a Config has a Clock, which stands still until the
// program advances it. In a bubble of testing/synctest, nodes joined by Pipes
// live in the bubble's time.
package tidepool
