// Package netem is what a link does to the packets that cross it: it delays them,
// lets through so many a second, queues, loses, repeats, damages, cuts and
// reorders them. It is pure: the same parts serve a world in virtual time and the
// links of a real node.
//
// A Link is one direction. A packet comes in by Input and passes, in this order,
//
//	queue     as long as the server is busy; without a rate there is none  (queue.go)
//	server    which takes its time for each byte                          (rate.go)
//	faults    loss, duplication, corruption, truncation                   (loss.go, damage.go)
//	wire      delay, jitter, reordering                                   (delay.go)
//
// until Output hands it over at the other end. So a packet that is lost has used
// the link, as it would have in the middle of a path. Each part is a description
// that a Config names and that New makes a working part from: another queue, loss
// model or rate is another file with another description.
//
// The contract is the one of every engine here. Input copies what it is given;
// what Output lends is valid until the next Input or Advance. Deadline says when
// Advance is due. A Link that has carried its load once allocates nothing more.
package netem
