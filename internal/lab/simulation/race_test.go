package simulation

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Several goroutines can run the same cell at the same time.
func TestConcurrentTrials(t *testing.T) {
	cells := variants()
	cells["script"] = cell("mine", 30)
	text, err := os.ReadFile("../../../tutorial/tahoe.star")
	require.NoError(t, err)
	cells["script"].Flows[0].Script = compile(t, "tahoe.star", string(text))
	for name, c := range cells {
		c.Duration = time.Second
		want := mustRun(t, c, 0)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				got, _, err := Run(c, 0, Options{Record: true})
				assert.NoError(t, err, name)
				assert.Equal(t, want, got, name)
			})
		}
		all.Wait()
	}
}
