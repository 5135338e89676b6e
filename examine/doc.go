// Package examine judges TCP/IP stacks by their packets. It plays the neighbors of a stack, the
// subject, sends it packets and compares what comes back with what an RFC or the course requires.
//
// A Check is one behavior, written in a small file (check.go, parse.go); the checks of this package
// are in checks/. Its steps send packets, expect packets, and carry out a user's commands at the
// subject. A pattern (pattern.go) describes a packet by a few of its fields. An execution
// (execution.go) carries out the steps against a Run, which is one start of the subject. The
// subject may run in virtual time or in real time, because a Run keeps the time.
//
// An Exam (exam.go) carries out each check three times and collects the results. Times are in units
// of the subject: its answer time (rtt) and its retransmission timeout (rto), which the Exam
// measures first.
package examine
