// Package gauge measures what flows do on a path: at the bottleneck, and at a sender.
//
// It does not know who drives the path. internal/lab/play shows it links and connections in
// virtual time, internal/lab/realtime those of processes in real time, so that both count alike.
//
// address.go is who has which address, parcel.go whose packet one is, meter.go what a direction
// of the bottleneck does, path.go both of them, capacity.go what they could have done, view.go
// what is seen of a sender, tape.go what figures are drawn from, thinner.go how that stays small,
// histogram.go how times are counted.
package gauge
