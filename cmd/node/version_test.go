package main

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The version comes from the build information. Without it, the program says that its version is
// unknown.
func TestVersionOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, version string
		settings      []debug.BuildSetting
		want          string
	}{
		{"no stamp", "(devel)", nil, "node unknown (built without VCS) go"},
		{"no version", "", nil, "node unknown (built without VCS) go"},
		{"a release", "v1.2.3", nil, "node v1.2.3 go"},
		{
			"a commit alone", "(devel)",
			[]debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}},
			"node unknown (0123456789ab) go",
		},
		{
			"a tree with changes", "v0.0.0-1-0123456789ab+dirty",
			[]debug.BuildSetting{
				{Key: "vcs.revision", Value: "0123456789abcdef"},
				{Key: "vcs.modified", Value: "true"},
			},
			"node v0.0.0-1-0123456789ab+dirty (0123456789ab, modified) go",
		},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: tt.version}, Settings: tt.settings}
		assert.Contains(t, versionOf(info).String(), tt.want, tt.name)
	}
}
