// Package rip implements the distance-vector routing protocol RIP in three dialects: the course's,
// which is IP protocol 200 and unicast to configured neighbors; RIPv2 (RFC 2453) with
// authentication (RFC 4822); and RIPng for IPv6 (RFC 2080).
//
// A Speaker is the RIP engine of one router. It has no clock, sockets or goroutines: Input takes
// messages, Output returns messages to send, NextChange returns changes for the routing table, and
// the caller passes the time.
//
// One table (table.go) has one route for each prefix. A route is the router's own (own.go), learned
// from a gateway (gateway.go), or unreachable (expiry.go). The Speaker announces unreachable routes
// at Infinity for a while, so that the loss spreads even if a message is lost. It queues every
// change at each outlet (output.go), which is a neighbor or a whole link, and sends it with the
// next triggered update. The periodic update, and the response to a request, contain the whole
// table. input.go checks received messages in the order of RFC 2453 §3.9. Each dialect has a codec:
// message.go, message2.go and ripng.go. auth.go signs and verifies messages. Each reason to reject
// a message has a name (refusal.go).
//
// The cost of a refresh does not depend on the size of the table. Without changes and timeouts,
// nothing scans the table.
//
// # Differences between the course's dialect and RFC 2453
//
// The period is 5 s and the timeout 12 s. The receiver adds 1 to the cost for the link, and routers
// announce their own networks at 0. Triggered updates have no random delay of 1 to 5 s (§3.10.1):
// the course expects them at once. Changes that wait for the link are merged. The periodic update
// has no jitter (§3.8), because unicast neighbors do not share a link. A router that has lost a
// route requests its neighbors' tables after a tenth of the period, and does not wait for their
// next full update. All of these times can be configured in each dialect.
package rip
