//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that a node switches to after it has opened its devices.
type account struct {
	name     string
	uid, gid int
}

// findAccount returns the user to switch to, or nil if the process keeps its user. If root starts a
// daemon, the daemon switches to the owner of its socket's directory, unless name is set.
func findAccount(name, socket string, daemon bool) (*account, error) {
	root := os.Geteuid() == 0
	if name == "" && root && daemon && socket != "" {
		info, err := os.Stat(filepath.Dir(socket))
		if err != nil {
			return nil, nil //nolint:nilerr,nilnil // opening the socket reports it
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid != 0 {
			name = strconv.Itoa(int(s.Uid))
		}
	}
	if name == "" {
		return nil, nil //nolint:nilnil // no user to switch to
	}
	u, err := user.Lookup(name)
	if _, unknown := errors.AsType[user.UnknownUserError](err); unknown {
		if _, number := strconv.Atoi(name); number == nil {
			u, err = user.LookupId(name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--user %q: no such user on this machine: %w", name, err)
	}
	a := &account{name: u.Username}
	if a.uid, err = strconv.Atoi(u.Uid); err != nil {
		return nil, fmt.Errorf("--user %q: user number %q: %w", name, u.Uid, err)
	}
	if a.gid, err = strconv.Atoi(u.Gid); err != nil {
		return nil, fmt.Errorf("--user %q: group number %q: %w", name, u.Gid, err)
	}
	switch {
	case a.uid == os.Geteuid():
		return nil, nil //nolint:nilnil // the process already has this user
	case !root:
		return nil, fmt.Errorf("--user %q: only root can become another user: start the node with "+
			"sudo, or without --user", name)
	}
	return a, nil
}

// become changes the user in all threads, permanently. The kernel clears the capabilities when the
// process has no user ID 0 any more.
func (a *account) become() error {
	if err := syscall.Setgroups([]int{a.gid}); err != nil {
		return fmt.Errorf("--user %s: set groups: %w", a.name, err)
	}
	if err := syscall.Setgid(a.gid); err != nil {
		return fmt.Errorf("--user %s: set group %d: %w", a.name, a.gid, err)
	}
	if err := syscall.Setuid(a.uid); err != nil {
		return fmt.Errorf("--user %s: set user %d: %w", a.name, a.uid, err)
	}
	if syscall.Setuid(0) == nil {
		return fmt.Errorf("--user %s: the process can still become root", a.name)
	}
	return nil
}
