package interchange_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/interchange"
)

// kubernetes-validate has the published schemas of the API.
func TestManifestsOfASweepAreValid(t *testing.T) {
	tool := cached(t, kubernetesTool)
	t.Setenv("PYTHONPATH", tool)
	s := &interchange.Sweep{
		Name: "tidepool-a", Image: "registry.example/tidepool:v1", Claim: "sweeps", ClaimSize: "10Gi",
		Args: []string{"lab", "run", "--index=0-7"}, Pods: 8, AtOnce: 20, Time: 90 * time.Second,
		Memory: 320 << 20, Files: map[string][]byte{
			"experiment.yaml": []byte("name: a\nseed: 1\n"), "files/my cc.star": []byte("x = 'a: b'"),
			"files/noise": {0xff, 0, 1},
		},
	}
	job, err := s.Manifests()
	require.NoError(t, err)
	pod, err := s.Reader()
	require.NoError(t, err)
	var paths []string
	for name, text := range map[string][]byte{"job.yaml": job, "pod.yaml": pod} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		paths = append(paths, path)
	}
	// the first is the oldest suitable version
	for _, version := range []string{"1.29.0", "1.37.0"} {
		args := []string{filepath.Join(tool, "bin", "kubernetes-validate"), "-k", version, "--strict"}
		said := run(t, nil, "python3", append(args, paths...)...)
		assert.Equal(t, 4, strings.Count(string(said), " passed for resource "), string(said))
	}
	for _, want := range []string{
		"parallelism: 8\n", "activeDeadlineSeconds: 390\n", "memory: 320Mi\n",
		"\n  file-2: " + base64.StdEncoding.EncodeToString(s.Files["files/noise"]) + "\n",
		"- key: file-1\n                path: files/my cc.star\n",
	} {
		assert.Contains(t, string(job), want)
	}
}
