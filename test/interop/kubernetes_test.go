//go:build linux

package interop_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A sweep on Kubernetes loses no part, and no part has two different results, although pods are
// killed and removed, one index fails too often, and a transfer is cut off. The results equal those
// of a run on one machine, byte for byte, here and on another machine.
func TestKubernetesRunsASweep(t *testing.T) {
	report(t, &row{
		peer: "kubectl", scenario: "8 parts; 2 killed, 1 removed, 1 gives up, a cut transfer",
	})
	k := newKubernetes(t)
	node, dir, alone := k.path("node"), k.path("sweep"), k.path("alone")
	sweep := []string{"tahoe-low", "--trials", "8", "--set", "duration=30s"}
	k.killed[podFault{1, 1, 0}] = true
	k.spared[podFault{1, 2, 0}] = true
	for attempt := range 3 { // backoffLimitPerIndex is 2
		k.killed[podFault{1, 5, attempt}] = true
	}
	last := podFault{1, 7, 0}
	k.held[last] = make(chan struct{})
	k.cut = 1

	submit := append(append([]string{"lab", "submit"}, sweep...), "--on", "kubernetes", "--parts",
		"8", "--at-once", "4", "--image", "tidepool:good", "--claim", "sweeps", "-o", dir)
	preview := k.command(node, append(submit, "--dry-run", "--claim-size", "1Gi")...)
	manifests, err := preview.Output()
	require.NoError(t, err)
	check := k.command("kubectl", "create", "--dry-run=client", "-f", "-")
	check.Stdin = strings.NewReader(string(manifests))
	said, err := check.CombinedOutput()
	require.NoError(t, err, string(said))
	for _, made := range []string{
		"persistentvolumeclaim/sweeps", "configmap/tidepool-tahoe-low",
		"job.batch/tidepool-tahoe-low",
	} {
		assert.Contains(t, string(said), made+" created (dry run)")
	}

	b := &bed{t: t}
	b.must(k.command(node, append(submit, "--detach", "--claim-size", "1Gi")...))
	k.wait("all parts but two are done", func() bool {
		for name, o := range k.objects {
			if strings.HasPrefix(name, "jobs/") {
				return o.number("status", "succeeded") == 6 && o.text("status", "failedIndexes") == "5"
			}
		}
		return false
	})
	elsewhere := filepath.Join(t.TempDir(), "sweep")
	said, err = k.command(node, "lab", "collect", elsewhere, "--claim", "sweeps", "--image",
		"tidepool:good").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(said), "some runs are missing: 6 runs of cells 1, 2")

	resumed := b.start(k.command(node, submit...))
	k.wait("the command waits for the job", func() bool { return k.asked > 3 })
	close(k.held[last])
	resumed.wait()
	t.Log(resumed.out.String())
	assert.Contains(t, resumed.out.String(), "1 parts failed and are queued again; part 5: exit status 137")
	assert.Contains(t, resumed.out.String(), "24 runs")

	b.must(k.command(node, "lab", "collect", elsewhere, "--claim", "sweeps", "--image", "tidepool:good"))
	b.must(k.command(node, append(append([]string{"lab", "run"}, sweep...), "-o", alone)...))
	b.must(exec.Command("diff", "-r", "--exclude=batch", dir, alone))
	b.must(exec.Command("diff", "-r", "--exclude=batch", elsewhere, alone))

	k.mu.Lock()
	defer k.mu.Unlock()
	left := slices.DeleteFunc(slices.Sorted(maps.Keys(k.objects)), func(name string) bool {
		return strings.HasPrefix(name, "pods/tidepool-tahoe-low-") && !strings.Contains(name, "-read-")
	})
	require.Len(t, left, 3, "a ConfigMap goes with its Job, and a reading pod at its end: %v", left)
}

// Each fault results in one line that says what to do, and nothing is left in the cluster.
func TestKubernetesFaults(t *testing.T) {
	k := newKubernetes(t)
	k.images["tidepool:other"] = k.images["tidepool:good"]
	k.mu.Lock()
	for _, phase := range []string{"Bound", "Pending", "Lost"} {
		k.add("persistentvolumeclaims", object{
			"kind": "PersistentVolumeClaim", "apiVersion": "v1",
			"metadata": map[string]any{"name": strings.ToLower(phase)},
			"spec":     map[string]any{"storageClassName": "slow"},
			"status":   map[string]any{"phase": phase},
		})
	}
	k.mu.Unlock()
	said, err := k.command(k.path("node"), "lab", "collect", filepath.Join(t.TempDir(), "sweep"),
		"--claim", "none").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(said), `lab collect: no volume claim "none": choose another with --claim NAME`)
	for name, tt := range map[string]struct {
		args []string
		set  func()
		want string
	}{
		"no claim": {
			[]string{"--claim", "none"},
			nil,
			"no volume claim \"none\": choose another with --claim NAME (`kubectl get pvc` lists them), " +
				"or create it with --claim-size 10Gi",
		},
		"a claim that waits": {
			[]string{"--claim", "pending"},
			nil,
			"the volume claim \"pending\" is not bound: it is Pending; `kubectl describe pvc pending` " +
				"says why",
		},
		"a lost claim": {
			[]string{"--claim", "lost"},
			nil,
			"the volume claim \"lost\" is not bound: it is Lost; `kubectl describe pvc lost` says why",
		},
		"no such image": {
			[]string{"--claim", "bound", "--image", "tidepool:none"},
			nil,
			`image "tidepool:none" cannot be pulled: ImagePullBackOff: Back-off pulling image ` +
				`"tidepool:none"; submit … --image NAME names one that the cluster can pull`,
		},
		"an image of another version": {
			[]string{"--claim", "bound", "--image", "tidepool:other"},
			nil,
			"version v0 submitted the job: ", // followed by what to do, which depends on this build
		},
		"no such context": {
			[]string{"--claim", "bound", "--", "--context=moon"},
			nil,
			"`kubectl config get-contexts` lists the clusters; choose one with -- --context=NAME",
		},
		"no cluster": {
			[]string{"--claim", "bound", "--", "--server=http://127.0.0.1:1"},
			nil,
			"`kubectl config get-contexts` lists the clusters; choose one with -- --context=NAME",
		},
		"a quota": {
			[]string{"--claim", "bound"},
			func() { k.quota = true },
			"limited: count/jobs.batch=1; use fewer --at-once, a lower --memory, or another namespace: " +
				"-- --namespace=NAME",
		},
	} {
		t.Run(name, func(t *testing.T) {
			k.mu.Lock()
			k.quota = false
			if tt.set != nil {
				tt.set()
			}
			k.mu.Unlock()
			args := append([]string{
				"lab", "submit", "tahoe-low", "--trials", "1", "--set", "duration=30s", "--on",
				"kubernetes", "--image", "tidepool:good", "-o", filepath.Join(t.TempDir(), "sweep"),
			}, tt.args...)
			said, err := k.command(k.path("node"), args...).CombinedOutput()
			require.Error(t, err)
			lines := strings.Split(strings.TrimSpace(string(said)), "\n")
			t.Log(string(said))
			assert.Contains(t, lines[len(lines)-1], tt.want)
			k.mu.Lock()
			defer k.mu.Unlock()
			for object := range k.objects {
				assert.Regexp(t, "^persistentvolumeclaims/", object)
			}
		})
	}
}

// If a Job's pods exceed a quota, a message says so, and Ctrl-C leaves the Job in the cluster.
func TestKubernetesWaitsForAQuota(t *testing.T) {
	k := newKubernetes(t)
	k.noPods = true
	said, err := os.Create(k.path("said"))
	require.NoError(t, err)
	defer said.Close()
	dir := k.path("sweep")
	submit := k.command(k.path("node"), "lab", "submit", "tahoe-low", "--trials", "1", "--set",
		"duration=30s", "--on", "kubernetes", "--claim-size", "1Gi", "-o", dir)
	submit.Stdout, submit.Stderr = said, said
	require.NoError(t, submit.Start())
	t.Cleanup(func() { _ = submit.Process.Kill() }) // the process may have exited
	has := func(line string) func() bool {
		return func() bool {
			text, err := os.ReadFile(said.Name())
			return err == nil && strings.Contains(string(text), line)
		}
	}
	require.Eventually(t, has("3 parts wait: Error creating: pods"), 10*patience, 50*time.Millisecond)
	assert.True(t, has("exceeded quota: small; use fewer --at-once, a lower --memory, or another "+
		"namespace: -- --namespace=NAME\n")())
	require.NoError(t, submit.Process.Signal(syscall.SIGINT))
	require.Error(t, submit.Wait())
	assert.True(t, has(" stays queued; `"+k.path("node")+" lab submit "+dir+
		" --on kubernetes` continues\n")())
	assert.Equal(t, 130, submit.ProcessState.ExitCode())
	k.mu.Lock()
	defer k.mu.Unlock()
	assert.Len(t, k.list("jobs", nil), 1)
}
