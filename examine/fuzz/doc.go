// Package fuzz drives TCP stacks with generated sequences of events: calls of the user, segments of
// the peer, and the passing of time. It compares the answers with a model of RFC 9293 and with
// those of other stacks, and shrinks a sequence that shows a difference. The model is data:
// rfc9293.model.
package fuzz
