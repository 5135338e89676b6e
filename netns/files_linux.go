package netns

import (
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// stage is a directory that exists everywhere. A file system in memory is mounted there for a
// moment, so no disk is needed.
const stage = "/tmp"

// resolvers are sockets of programs that resolve names on the machine's network. Programs in the
// namespace must not find them.
var resolvers = []string{"/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket"}

// bindFiles mounts files in memory over those of the machine, in this mount namespace only.
func (c *Config) bindFiles() error {
	if len(c.Files) == 0 {
		return nil
	}
	fail := func(what string, err error) error { return &SetupError{Op: what, Err: err} }
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fail("make mounts private", err)
	}
	if err := unix.Mount("tmpfs", stage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV,
		"size=16m,mode=755"); err != nil {
		return fail("mount a file system in memory", err)
	}
	defer func() { _ = unix.Unmount(stage, unix.MNT_DETACH) }() // the mounted files remain
	for i, path := range slices.Sorted(maps.Keys(c.Files)) {
		from := filepath.Join(stage, strconv.Itoa(i))
		if err := os.WriteFile(from, []byte(c.Files[path]), 0o644); err != nil {
			return fail("write "+path, err)
		}
		if err := unix.Mount(from, path, "", unix.MS_BIND, ""); err != nil {
			return fail("replace "+path+" for the program", err)
		}
	}
	for _, path := range resolvers {
		// most machines do not have this socket
		_ = unix.Mount("/dev/null", path, "", unix.MS_BIND, "")
	}
	return nil
}

func defaultRoute(gateway netip.Addr) netip.Prefix {
	if gateway.Is6() {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}
