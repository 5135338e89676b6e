package link

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// These functions advise about errors: with a command, or with the missing permission.

// openAdvice returns advice about errors of opening /dev/net/tun.
func openAdvice(err error) string {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return "the kernel module is missing: sudo modprobe tun; " +
			"a container needs --device " + tunPath
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return "run as root; or let all users open it, which gives them no access to the " +
			"network: sudo chmod 666 " + tunPath
	}
	return ""
}

func attachAdvice(device string, err error) string {
	switch {
	case errors.Is(err, unix.EPERM):
		return missing("sudo ip tuntap add dev " + device + " mode tun user $USER")
	case errors.Is(err, unix.EBUSY):
		return "another node running?"
	case errors.Is(err, unix.EINVAL):
		return "a device of another kind has that name"
	}
	return ""
}

// setUpAdvice returns advice about errors of configuring the kernel's end.
func setUpAdvice(cfg TUNConfig, err error) string {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return ""
	}
	var commands []string
	for _, p := range cfg.Kernel {
		commands = append(commands, fmt.Sprintf("sudo ip address add %v dev %s", p, cfg.Device))
	}
	return missing(append(commands,
		fmt.Sprintf("sudo ip link set %s mtu %d up", cfg.Device, cfg.Interface.MTU))...)
}

// missing returns how to get CAP_NET_ADMIN, or what to do without it.
func missing(commands ...string) string {
	const lacking = "CAP_NET_ADMIN is missing: "
	if os.Geteuid() == 0 { // the process is in a container or user namespace
		return lacking + "a container needs --cap-add NET_ADMIN --device " + tunPath
	}
	program, err := os.Executable()
	if err != nil {
		program = "node"
	}
	return lacking + "sudo setcap cap_net_admin+ep " + program + "; or run by hand: " +
		strings.Join(commands, " && ")
}
