// Package udp is the User Datagram Protocol (RFC 768, and RFC 1122 §4.1 for hosts): the codec of
// its header, and a host's sockets.
//
// header.go is the codec, host.go finds the socket of a datagram, socket.go is one socket, and
// queue.go is the queue of its received datagrams. The package has no Output and no timer, because
// the stack sends datagrams at once.
package udp
