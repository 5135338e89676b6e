// Package examine tests TCP/IP stacks by their packets. It plays the neighbors of a stack, the
// subject: it sends packets to the subject, and compares the packets that the subject sends with
// the requirements of an RFC or the course.
//
// A Check is one behavior, written in a small file (check.go, parse.go); the checks of this package
// are in checks/. Its steps send packets, expect packets, and carry out a user's commands at the
// subject. A pattern (pattern.go) describes a packet by a few of its fields. An execution
// (execution.go) carries out the steps against a Run, which is one start of the subject. A Run has
// its own clock, so the subject may run in virtual time or in real time.
//
// An Exam (exam.go) carries out each check three times and collects the results. Times are in units
// of a subject: the time in which it may answer (rtt, 20 ms), and its retransmission timeout (rto),
// which the Exam measures first.
package examine
