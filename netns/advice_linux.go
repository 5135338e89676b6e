package netns

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Settings by which distributions forbid ordinary users to create user namespaces.
const (
	appArmorSetting = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	debianSetting   = "/proc/sys/kernel/unprivileged_userns_clone"
	countSetting    = "/proc/sys/user/max_user_namespaces"
)

// setting reads a setting of the kernel; tests replace it.
var setting = func(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// userNamespaceAdvice returns the command that permits user namespaces, if a setting forbids them.
func userNamespaceAdvice() string {
	switch {
	case setting(debianSetting) == "0":
		return "this machine allows user namespaces to root only: " +
			"sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case setting(countSetting) == "0":
		return "this machine allows no user namespaces: " +
			"sudo sysctl -w user.max_user_namespaces=10000"
	case setting(appArmorSetting) == "1":
		return "AppArmor restricts user namespaces (Ubuntu 23.10 and later): " +
			"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	}
	return "a container or sandbox may forbid user namespaces: run it outside, or the container " +
		"with --security-opt seccomp=unconfined"
}

// deviceAdvice returns userNamespaceAdvice if AppArmor may have caused the error of a device.
func deviceAdvice(err error) string {
	if errors.Is(err, unix.EPERM) && setting(appArmorSetting) == "1" {
		return userNamespaceAdvice()
	}
	return ""
}
