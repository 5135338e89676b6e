package hub

import (
	"fmt"
	"net"
	"net/netip"
)

// FileForm is the format of a student's .lnx file.
type FileForm struct {
	// Grammar is "new" or the first year of an old grammar, "2018" or "2013". Empty: new.
	Grammar string
	// Port is the UDP port of the student's node. 0: 5000 plus the number of the slot.
	Port uint16
}

// file returns the .lnx file that connects a student's node to the hub.
func (h *Hub) file(s *student, f FileForm) (string, error) {
	host, port, err := net.SplitHostPort(h.cfg.Public)
	if err != nil {
		return "", err
	}
	if f.Port == 0 {
		f.Port = uint16(5000 + s.Slot)
	}
	here := "0.0.0.0"
	if a, err := netip.ParseAddr(host); err == nil && a.IsLoopback() || host == "localhost" {
		here = "127.0.0.1"
	}
	own, router := h.host(s.Slot), h.router(s.Slot)
	switch f.Grammar {
	case "", "new":
		return fmt.Sprintf("# %s's link to the hub. The subnet is %v.\n"+
			"interface hub %v/24 %s:%d\nneighbor %v at %s via hub\n\n"+
			"routing rip\nrip advertise-to %v\n", s.Name, h.subnet(s.Slot), own, here, f.Port,
			router, net.JoinHostPort(host, port), router), nil
	case "2018":
		return fmt.Sprintf("%s %d\n%s %s %v %v\n", here, f.Port, host, port, own, router), nil
	case "2013":
		return fmt.Sprintf("%s:%d\n%s:%s %v %v\n", here, f.Port, host, port, own, router), nil
	}
	return "", invalid("grammar %q: must be new, 2018 or 2013", f.Grammar)
}
