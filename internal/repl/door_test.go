package repl

import (
	"context"
	"net/netip"
	"testing"

	"github.com/tidepool-net/tidepool/internal/control"
)

// behindDoors returns a node with some port forwards.
func behindDoors() *fake {
	return &fake{do: func(_ context.Context, req any) (any, error, bool) {
		switch r := req.(type) {
		case control.Publish:
			on := r.On
			if !on.IsValid() {
				on = netip.MustParseAddr("127.0.0.1")
			}
			return control.Door{
				ID: 3, Kind: control.DoorPublish, Network: "tcp",
				From: netip.AddrPortFrom(on, r.Port).String(), To: r.To.String(),
			}, nil, true
		case control.Expose:
			return control.Door{
				ID: 4, Kind: control.DoorExpose, Network: "udp", From: "53", To: r.To,
			}, nil, true
		case control.Splice:
			return nil, control.ErrPortInUse, true
		case control.CloseDoor:
			if r.ID > 4 {
				return nil, control.ErrNoSuchDoor, true
			}
			return control.Nothing{}, nil, true
		case control.Doors:
			return []control.Door{
				{
					Kind: control.DoorPublish, Network: "tcp", From: "127.0.0.1:8080",
					To: "10.1.0.2:80", Open: 3, Opened: 70, Failed: 1, In: 4000, Out: 90000000,
					Problem: "connection refused\x1b",
				},
				{ID: 1, Kind: control.DoorExpose, Network: "udp", From: "53", To: "ns:53", Closing: true},
			}, nil, true
		}
		return nil, nil, false
	}}
}

// TestDoors compares the output for port forwards with testdata/doors.golden.
func TestDoors(t *testing.T) {
	transcript(t, "doors.golden", behindDoors, []string{
		"publish 8080 10.1.0.2:80", "publish localhost:8080 10.1.0.2:80 --json",
		"publish [::1]:8080 [2001:db8::2]:80", "publish ::1:x 10.1.0.2:80",
		"publish 0.0.0.0:8080 10.1.0.2:80", "publish 8080", "publish 8080 10.1.0.2",
		"publish web:80 10.1.0.2:80", "publish 99999 10.1.0.2:80", "expose 80 3000",
		"expose 53 ns:53 --udp", "expose 80 x", "expose x 80", "splice 10.0.0.2", "splice x",
		"doors", "publish", "expose --json", "doors close 0", "doors close all --cut",
		"doors close 9", "doors close x", "doors clos 0", "help publish", "help doors",
	})
}
