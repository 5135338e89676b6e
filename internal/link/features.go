package link

// Features are the link features of this machine's kernel.
type Features struct {
	// GSO and GRO are the kernel's segmentation and joining of UDP trains.
	GSO bool `json:"gso"`
	GRO bool `json:"gro"`
	// TUN is set if this process can create a device; otherwise TUNProblem is the reason.
	// VNet is set if such a device can carry whole trains.
	TUN        bool   `json:"tun"`
	VNet       bool   `json:"tun_vnet"`
	TUNProblem string `json:"tun_problem,omitempty"`
}
