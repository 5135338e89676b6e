// Package rip is the distance-vector routing protocol RIP in two dialects: the
// course's, IP protocol 200 and unicast to configured neighbours, and RIPv2 itself
// (RFC 2453) with its authentication (RFC 4822).
//
// A Speaker is one router's half of it, pure like every engine: messages come
// in by Input, leave by Output, time is handed in, and what has been found out
// is told to the owner of the routing table by NextChange.
//
// One table (table.go) holds a route a prefix: ours (own.go); learned, with the
// gateway it came from (gateway.go); or dead, at Infinity, which is announced until it
// is forgotten so that the news spreads even when a message is lost. Every
// change is put on the list of each outlet (outlet.go), a neighbour or all on a link,
// and leaves with the next triggered update (output.go); once in a period, and to who
// asks, the whole table goes instead. What a neighbour says is judged in input.go and
// input2.go, in the order of RFC 2453 §3.9. Each dialect has a codec, message.go and
// message2.go; auth.go signs and verifies. What is refused has a name (refusal.go).
//
// A refresh costs the same however large the table is, a change what its messages
// cost, and nothing is looked through when nothing is due.
//
// # What the course's dialect has otherwise than RFC 2453
//
// The period is 5 s, the time-out 12 s, and a link costs 1, added by the
// receiver; own networks are announced at 0. Triggered updates (§3.10.1) are not
// held back by a random delay of 1 to 5 s: the course expects them at once, and
// our changes coalesce while they wait for the link. The periodic update
// carries no jitter (§3.8): with unicast neighbours there is no shared wire
// to flood. Who has lost a route asks its neighbours for another after a tenth
// of the period, instead of waiting for their next full update. All of that can be
// configured in either dialect.
package rip
