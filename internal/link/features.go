package link

// Features are what this machine lets links do, as it was found by asking its kernel.
type Features struct {
	// GSO and GRO are the kernel's cutting and joining of trains of datagrams.
	GSO bool `json:"gso"`
	GRO bool `json:"gro"`
	// TUN is set if a device can be made or opened by this process; else TUNProblem says what is
	// in the way. VNet is set if whole trains cross such a device.
	TUN        bool   `json:"tun"`
	VNet       bool   `json:"tun_vnet"`
	TUNProblem string `json:"tun_problem,omitempty"`
}
