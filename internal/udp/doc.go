// Package udp is the User Datagram Protocol (RFC 768, and RFC 1122 §4.1 for what
// a host does with it): the codec of its header, and a host's sockets.
//
// header.go is the codec, host.go finds the socket that a datagram is for,
// socket.go is one socket, queue.go what it has received. Datagrams leave as
// they are sent: the stack renders them, so there is no Output here, and no
// timer.
package udp
