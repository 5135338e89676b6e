//go:build !unix

package main

import "errors"

// account is the user that a node switches to after it has opened its devices.
type account struct{}

func findAccount(name, _ string, _ bool) (*account, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // no user to switch to
	}
	return nil, errors.New("--user: not supported on this system")
}

func (a *account) become() error { return nil }
