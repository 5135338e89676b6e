//go:build !linux

package examine

import "errors"

// Kernel returns this machine's kernel as the subject.
func Kernel() (Subject, error) {
	return nil, errors.New("examining the kernel needs TUN devices of Linux")
}
