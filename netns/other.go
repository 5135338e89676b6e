//go:build !linux

package netns

import (
	"os"

	"github.com/tidepool-net/tidepool/internal/link"
)

// Main does nothing on this system.
func Main() {}

// Adopt returns ErrUnsupported.
func Adopt() error { return ErrUnsupported }

// Process is a program in its namespaces.
type Process struct{}

// Start returns ErrUnsupported.
func Start(Config, Program) (*Process, error) { return nil, ErrUnsupported }

// Join returns ErrUnsupported.
func Join([]*os.File, Program) (*Process, error) { return nil, ErrUnsupported }

// Namespaces returns ErrUnsupported.
func (*Process) Namespaces() ([]*os.File, error) { return nil, ErrUnsupported }

// TUN returns nil.
func (*Process) TUN() *link.TUN { return nil }

// Run returns ErrUnsupported.
func (*Process) Run() error { return ErrUnsupported }

// Abandon does nothing.
func (*Process) Abandon() {}

// Wait returns ErrUnsupported.
func (*Process) Wait(Left) error { return ErrUnsupported }
