package batch

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIndex(t *testing.T) {
	for _, tt := range []struct {
		list, place string
		want        int
		err         string
	}{
		{"0-3,7,9-10", "0", 0, ""},
		{"0-3,7,9-10", "4", 7, ""},
		{"0-3,7,9-10", "6", 10, ""},
		{"0-3,7,9-10", "7", 0, `index "7": must be 0 to 6, a position in the list 0-3,7,9-10 of parts`},
		{"5", "-1", 0, `index "-1": must be 0 to 0, a position in the list 5 of parts`},
		{"0-1", "", 0, `index "": must be 0 to 1, a position in the list 0-1 of parts`},
		{"3-1", "0", 0, `"3-1": must be numbers and ranges such as 0-3,7`},
		{"a", "0", 0, `"a": must be numbers and ranges such as 0-3,7`},
		{"0,", "0", 0, `"0,": must be numbers and ranges such as 0-3,7`},
		{"0-99999999", "0", 0, `"0-99999999": must be numbers and ranges such as 0-3,7`},
	} {
		got, err := Index(tt.list, tt.place)
		if tt.err != "" {
			require.EqualError(t, err, tt.err)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, tt.want, got)
	}
}

// podOf parses a pod as kubectl prints it.
func podOf(t *testing.T, status string) *pod {
	t.Helper()
	p := new(pod)
	require.NoError(t, json.Unmarshal([]byte(`{"metadata": {"name": "x-1-abc", "annotations":
		{"batch.kubernetes.io/job-completion-index": "1"}}, "spec": {"containers": [{"image": "i:1",
		"args": ["lab", "--among=3,8", "--index=$(JOB_COMPLETION_INDEX)"]}]}, "status": `+status+`}`), p))
	return p
}

func TestPodSaysWhyItFailed(t *testing.T) {
	for status, want := range map[string]string{
		`{"reason": "DeadlineExceeded", "message": "Pod was active too long"}`: "DeadlineExceeded " +
			"Pod was active too long",
		`{"containerStatuses": [{"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}`: "" +
			"OOMKilled",
		`{"containerStatuses": [{"state": {"terminated": {"exitCode": 1, "reason": "Error",
			"message": "one\nno space left on device\n"}}}]}`: "no space left on device",
		`{"containerStatuses": [{"state": {"terminated": {"exitCode": 137, "reason": "Error"}}}]}`: "" +
			"exit status 137",
	} {
		p := podOf(t, status)
		output, _ := p.lastLine()
		assert.Equal(t, want, output)
		part, err := p.part()
		require.NoError(t, err)
		assert.Equal(t, 8, part)
		assert.False(t, p.interrupted())
	}
	assert.True(t, podOf(t, `{"conditions": [{"type": "DisruptionTarget", "status": "True"}]}`).
		interrupted())
}

func TestPodSaysWhyItWaits(t *testing.T) {
	waiting := func(reason, message string) string {
		return `{"containerStatuses": [{"state": {"waiting": {"reason": "` + reason +
			`", "message": "` + message + `"}}}]}`
	}
	unscheduled := func(message string) string {
		return `{"conditions": [{"type": "PodScheduled", "status": "False", "message": "` + message +
			`"}]}`
	}
	for _, tt := range []struct {
		status, want string
		fatal        bool
	}{
		{waiting("ContainerCreating", ""), "", false},
		{
			waiting("ErrImagePull", "no such host"), `image "i:1" cannot be pulled: ErrImagePull: no ` +
				`such host; submit … --image NAME names one that the cluster can pull`, false,
		},
		{
			waiting("InvalidImageName", ""), `image "i:1" cannot be pulled: InvalidImageName; submit ` +
				`… --image NAME names one that the cluster can pull`, true,
		},
		{waiting("CreateContainerError", "no such program"), "CreateContainerError: no such program", true},
		{
			unscheduled("0/3 nodes are available: 3 Insufficient memory."), "0/3 nodes are available: " +
				"3 Insufficient memory.; no machine has that much free: wait, or use a lower --memory",
			false,
		},
		{
			unscheduled("pod has unbound immediate PersistentVolumeClaims"), "pod has unbound " +
				"immediate PersistentVolumeClaims; `kubectl describe pvc` says why the claim is not bound",
			false,
		},
	} {
		why, fatal := podOf(t, tt.status).why()
		assert.Equal(t, tt.want, why)
		assert.Equal(t, tt.fatal, fatal)
	}
}

func TestKubectlIsNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := (&Kubernetes{}).Ready(t.Context(), &Job{Pod: Pod{Claim: "c"}})
	require.EqualError(t, err, "kubectl is not in PATH: install it (Debian: kubernetes-client), or "+
		"use --on local")
}

// The messages are those of kubectl 1.20 and 1.32.
func TestKubectlRefusals(t *testing.T) {
	for output, want := range map[string]string{
		"E1123 17:18:07.711348    4022 memcache.go:265] \"Unhandled Error\"\n" +
			"Error from server (Forbidden): jobs.batch is forbidden: User \"u\" cannot create\n": "kubectl: " +
			"Error from server (Forbidden): jobs.batch is forbidden: User \"u\" cannot create; ask for the " +
			"right to create jobs, configmaps and pods and to read logs, or use another namespace: " +
			"-- --namespace=NAME",
		"error: error validating \"STDIN\": error validating data: ValidationError(Job.spec): unknown " +
			"field \"backoffLimitPerIndex\" in io.k8s.api.batch.v1.JobSpec\n": "kubectl: error validating " +
			"\"STDIN\": error validating data: ValidationError(Job.spec): unknown field " +
			"\"backoffLimitPerIndex\" in io.k8s.api.batch.v1.JobSpec; the cluster must be Kubernetes 1.29 " +
			"or newer",
		"error: You must be logged in to the server (Unauthorized)\n": "kubectl: You must be logged in to " +
			"the server (Unauthorized); log in to the cluster again",
	} {
		require.EqualError(t, &refused{kubectl, "kubectl", message("kubectl", output)}, want)
	}
}

func TestKubernetesNeedsSmallFiles(t *testing.T) {
	j := &Job{Name: "x", Args: []string{"lab"}, Files: map[string][]byte{
		"experiment.yaml": []byte("name: x\n"), "files/up.trace": []byte(strings.Repeat("1\n", 1<<19)),
	}}
	_, err := (&Kubernetes{}).Script(j, []int{0})
	require.EqualError(t, err, "the experiment's files have 1048584 bytes; Kubernetes passes 1032192 "+
		"to a pod: use shorter traces, or --on slurm")
}
