//go:build !unix

package main

import "errors"

// account is the user of a node after it has opened its devices.
type account struct{}

func findAccount(name, _ string, _ bool) (*account, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // nobody to become
	}
	return nil, errors.New("--user: not supported on this system")
}

func (a *account) become() error { return nil }
