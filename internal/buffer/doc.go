// Package buffer holds the containers that bytes live in while they cross the
// rooms: the stream rings between an application and its connection, the map of
// what arrived out of order, and the trains of packets between stack and link.
package buffer
