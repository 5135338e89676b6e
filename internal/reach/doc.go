// Package reach holds the engines that find out about a network by sending packets of
// their own: Ping and Trace. They decide when to send what, match answers with
// probes and keep the books; what they send is rendered by whoever owns them, and
// what came back is given to them already taken apart. Time is an argument, so the
// same engines run on the wire and in virtual time.
package reach
