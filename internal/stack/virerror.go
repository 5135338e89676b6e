package stack

import (
	"errors"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/vir"
)

// virError gives an error of TCP the document's name.
func virError(err error) error {
	for _, row := range []struct {
		of   error
		name vir.Error
	}{
		{tcp.ErrUnreachable, vir.ErrDestinationUnreadable},
		{tcp.ErrTimeout, vir.ErrDestinationUnreadable},
		{tcp.ErrAddress, vir.ErrDestinationUnreadable},
		{tcp.ErrNoPorts, vir.ErrPortUsedUp},
		{tcp.ErrPortInUse, vir.ErrUsedPort},
	} {
		if errors.Is(err, row.of) {
			return fmt.Errorf("%w: %w", row.name, err)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", vir.ErrServerClosed, err)
	}
	return nil
}
