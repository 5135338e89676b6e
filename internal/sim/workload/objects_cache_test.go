package workload

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/sim"
)

// A cache returns the same objects that would be made from the world's seed, the name and the
// sizes.
func TestObjectCache(t *testing.T) {
	var cache ObjectCache
	cfg := ObjectsConfig{Pairs: 2, Small: 30, Large: 3000}.withDefaults()
	one := cache.take(sim.New(1), "a", &cfg)
	assert.Equal(t, makeItems(&cfg, sim.New(1).Rand("a")), one)
	assert.Same(t, &one[0], &cache.take(sim.New(1), "a", &cfg)[0], "the same memory")
	other := cfg
	other.Small = 31
	for name, items := range map[string][]Item{
		"seed": cache.take(sim.New(2), "a", &cfg),
		"name": cache.take(sim.New(1), "b", &cfg),
		"size": cache.take(sim.New(1), "a", &other),
	} {
		assert.NotEqual(t, one[1].Data, items[1].Data, name)
	}
	assert.Equal(t, one, cache.take(sim.New(1), "a", &cfg))

	// If the config has a seed, the worlds of all trials have the same objects.
	cfg.Seed = 1
	assert.Equal(t, one, cache.take(sim.New(2), "a", &cfg))
	assert.Same(t, &cache.take(sim.New(2), "a", &cfg)[0], &cache.take(sim.New(3), "a", &cfg)[0])
}
