// Package tidepool is a userspace TCP/IP stack for IPv4 and IPv6. A program opens hosts and routers
// that have their own addresses, routes and TCP, independent of the operating system's. Connections
// are net.Conns and listeners are net.Listeners, so net/http, crypto/tls or an SSH library work
// across such a network without changes.
//
// A Node is one host or router. Open makes one from a Config, OpenFile from an .lnx file:
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
// The link of an interface is a Pipe within the process, a UDP socket that carries the packets to
// another process or machine, or any io.ReadWriteCloser that reads and writes one packet per call,
// such as a tunnel or a TUN device. A program can use the other end of a Pipe directly: Read
// returns the next packet that the node sends, and Write delivers a packet to the node.
//
// All methods may be called by several goroutines at once. A blocked call returns when its deadline
// passes, or when its connection, listener or node is closed. A closed node leaves no goroutine or
// timer behind. Errors are *net.OpErrors; those about deadlines implement net.Error. errors.Is
// finds net.ErrClosed, os.ErrDeadlineExceeded and the system's error numbers, such as
// syscall.ECONNREFUSED, in them.
//
// Beyond Node's methods for listening and dialing:
//
//   - a Dialer chooses the local address and port;
//   - Forward and ForwardUDP accept connections and datagrams for any address;
//   - Conn.Info and Conn.Probe show what TCP does;
//   - the network "rcp" is a transport for lossy paths, without congestion control;
//   - ServeRDT and FetchRDT transfer many objects in one UDP flow;
//   - Vir has the socket calls of founding document 004.
//
// Nodes run in the system's time, unless their Config has a Clock, which only moves when the
// program advances it. In a testing/synctest bubble, nodes that are joined by Pipes run in the
// bubble's time.
package tidepool
