// Package controltest asks operators, for tests in which they have to know the answer.
package controltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Ask asks for something that has to succeed.
func Ask[A any](tb testing.TB, op control.Operator, req control.Request[A]) A {
	tb.Helper()
	answer, err := control.Ask(tb.Context(), op, req)
	require.NoError(tb, err)
	return answer
}
