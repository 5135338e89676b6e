//go:build linux

package interop_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// otherVersion is an image whose program has another version than the program that submits the job.
const otherVersion = "tidepool:other"

// object is an object of the Kubernetes API.
type object map[string]any

// at returns the value at a path of keys.
func (o object) at(path ...string) any {
	var v any = map[string]any(o)
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

func (o object) text(path ...string) string { s, _ := o.at(path...).(string); return s }

func (o object) number(path ...string) int { n, _ := o.at(path...).(float64); return int(n) }

// podFault identifies an attempt at an index of a Job; jobs count from 1.
type podFault struct{ job, index, attempt int }

// kubernetes simulates what kubectl talks to: the API, the Job controller, and the kubelet. The
// kubelet runs a pod as a process in a separate root that contains only the image's program, the
// volume and the experiment.
type kubernetes struct {
	t           *testing.T
	dir, volume string
	server      *httptest.Server
	images      map[string]string // paths of programs, by image
	// attempts that get SIGKILL, and those that get it because the machine is reclaimed
	killed, spared map[podFault]bool
	held           map[podFault]chan struct{}
	quota, noPods  bool // there is a quota for Jobs, or for pods
	cut            int  // number of logs that end in the middle

	mu      sync.Mutex
	changed *sync.Cond
	objects map[string]object // by kind/name
	logs    map[string]*bytes.Buffer
	running map[string]*exec.Cmd // by pod
	jobs    int
	asked   int // how often a client requested a Job
	pods    sync.WaitGroup
}

func newKubernetes(t *testing.T) *kubernetes {
	t.Helper()
	need(t, "kubectl", "unshare", "chroot")
	// The roots of pods must be readable for the pods' user.
	dir, err := os.MkdirTemp("", "tidepool-kubernetes") //nolint:usetesting // see above
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	k := &kubernetes{
		t: t, dir: dir, volume: filepath.Join(dir, "volume"),
		killed: map[podFault]bool{}, spared: map[podFault]bool{},
		held:    map[podFault]chan struct{}{},
		objects: map[string]object{}, logs: map[string]*bytes.Buffer{},
		running: map[string]*exec.Cmd{},
	}
	k.changed = sync.NewCond(&k.mu)
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Mkdir(k.volume, 0o755))
	require.NoError(t, os.Chown(k.volume, 65532, 65532)) // as fsGroup would
	program := filepath.Join(dir, "node")
	build := exec.Command("go", "build", "-o", program, "../../cmd/node")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	k.images = map[string]string{"tidepool:good": program}
	k.server = httptest.NewServer(http.HandlerFunc(k.serve))
	t.Cleanup(func() {
		k.mu.Lock()
		for name := range k.objects {
			k.deleteObject(name)
		}
		k.mu.Unlock()
		k.pods.Wait()
		k.server.Close()
	})
	config := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": [{"name": "test", "cluster": {"server": %q}}], "users": [{"name": "test"}],
		"contexts": [{"name": "test", "context":
			{"cluster": "test", "user": "test", "namespace": "lab"}}]}`, k.server.URL)
	require.NoError(t, os.WriteFile(k.path("config"), []byte(config), 0o600))
	return k
}

func (k *kubernetes) path(name string) string { return filepath.Join(k.dir, name) }

// command returns a program whose kubectl finds this cluster.
func (k *kubernetes) command(name string, args ...string) *exec.Cmd {
	cmd := (&bed{t: k.t}).commandFor(10*patience, "")
	cmd.Path, cmd.Err = exec.LookPath(name)
	cmd.Args = append([]string{name}, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+k.path("config"), "HOME="+k.dir)
	return cmd
}

// wait waits until a condition holds for the objects.
func (k *kubernetes) wait(what string, is func() bool) {
	k.t.Helper()
	late := false
	timer := time.AfterFunc(10*patience, func() {
		k.mu.Lock()
		late = true
		k.changed.Broadcast()
		k.mu.Unlock()
	})
	defer timer.Stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	for !is() && !late {
		k.changed.Wait()
	}
	require.False(k.t, late, what)
}

// resources are the resources of the API, by the path of their group.
var resources = map[string][]string{
	"/api/v1":                    {"pods", "configmaps", "persistentvolumeclaims", "events"},
	"/apis/batch/v1":             {"jobs"},
	"/apis/storage.k8s.io/v1":    {"storageclasses"},
	"/apis/authorization.k8s.io": nil,
}

var kinds = map[string]string{
	"pods": "Pod", "configmaps": "ConfigMap", "persistentvolumeclaims": "PersistentVolumeClaim",
	"events": "Event", "jobs": "Job", "storageclasses": "StorageClass",
}

func (k *kubernetes) serve(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.changed.Broadcast()
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch r.URL.Path {
	case "/api":
		answer(w, 200, object{"kind": "APIVersions", "versions": []string{"v1"}})
		return
	case "/apis":
		var groups []object
		for _, name := range []string{"batch", "storage.k8s.io"} {
			v := object{"groupVersion": name + "/v1", "version": "v1"}
			groups = append(groups, object{"name": name, "versions": []object{v}, "preferredVersion": v})
		}
		answer(w, 200, object{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
		return
	case "/openapi/v2": // an empty document in protobuf: swagger: "2.0"
		w.Header().Set("Content-Type", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
		_, _ = w.Write([]byte("\n\x032.0"))
		return
	}
	if names, ok := resources[r.URL.Path]; ok {
		var list []object
		for _, n := range names {
			list = append(list, object{
				"name": n, "kind": kinds[n], "namespaced": n != "storageclasses",
				"verbs": []string{"create", "delete", "get", "list", "patch"},
			})
		}
		answer(w, 200, object{
			"kind": "APIResourceList", "apiVersion": "v1", "resources": list,
			"groupVersion": strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/"),
		})
		return
	}
	path = path[slices.Index(path, "v1")+1:]
	if len(path) > 2 && path[0] == "namespaces" {
		path = path[2:]
	}
	k.serveObject(w, r, path)
}

// serveObject serves KIND, KIND/NAME and pods/NAME/log.
func (k *kubernetes) serveObject(w http.ResponseWriter, r *http.Request, path []string) {
	name := strings.Join(path[:min(2, len(path))], "/")
	o, exists := k.objects[name]
	switch {
	case kinds[path[0]] == "":
		problem(w, 404, "NotFound", "the server could not find the requested resource")
	case r.Method == http.MethodPost:
		k.create(w, r, path[0])
	case len(path) == 1:
		answer(w, 200, object{
			"kind": kinds[path[0]] + "List", "apiVersion": "v1",
			"items": k.list(path[0], r.URL.Query()),
		})
	case !exists:
		problem(w, 404, "NotFound", fmt.Sprintf("%s %q not found", path[0], path[1]))
	case len(path) == 3:
		log := k.logs[path[1]].String()
		if k.cut > 0 {
			k.cut--
			log = log[:len(log)/2]
		}
		_, _ = w.Write([]byte(log))
	case r.Method == http.MethodPatch:
		var patch object
		if json.NewDecoder(r.Body).Decode(&patch) == nil {
			o["metadata"].(map[string]any)["ownerReferences"] = patch.at("metadata", "ownerReferences")
		}
		answer(w, 200, o)
	case r.Method == http.MethodDelete:
		k.deleteObject(name)
		answer(w, 200, object{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	default:
		if path[0] == "jobs" {
			k.asked++
		}
		answer(w, 200, o)
	}
}

func answer(w http.ResponseWriter, status int, o object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(o)
}

func problem(w http.ResponseWriter, status int, reason, message string) {
	answer(w, status, object{
		"kind": "Status", "apiVersion": "v1", "status": "Failure",
		"reason": reason, "message": message, "code": status,
	})
}

// list returns the objects of a kind that match the selectors.
func (k *kubernetes) list(kind string, q url.Values) []object {
	list := []object{}
	for name, o := range k.objects {
		fits := strings.HasPrefix(name, kind+"/")
		for word := range strings.SplitSeq(q.Get("labelSelector"), ",") {
			key, value, is := strings.Cut(word, "=")
			labels, _ := o.at("metadata", "labels").(map[string]any)
			fits = fits && (!is || labels[key] == value)
		}
		for word := range strings.SplitSeq(q.Get("fieldSelector"), ",") {
			key, value, is := strings.Cut(word, "=")
			fits = fits && (!is || o.text(strings.Split(key, ".")...) == value)
		}
		if fits {
			list = append(list, o)
		}
	}
	if most, err := strconv.Atoi(q.Get("limit")); err == nil {
		list = list[:min(len(list), most)]
	}
	return list
}

// add adds an object.
func (k *kubernetes) add(kind string, o object) string {
	meta, _ := o["metadata"].(map[string]any)
	name := kind + "/" + o.text("metadata", "name")
	meta["uid"], meta["namespace"] = fmt.Sprint("uid-of-", name), "lab"
	if o["status"] == nil {
		o["status"] = map[string]any{}
	}
	k.objects[name] = o
	return name
}

func (k *kubernetes) create(w http.ResponseWriter, r *http.Request, kind string) {
	o := object{}
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		problem(w, 400, "BadRequest", err.Error())
		return
	}
	name := o.text("metadata", "name")
	if k.quota && kind == "jobs" {
		problem(w, 403, "Forbidden", fmt.Sprintf("jobs.batch %q is forbidden: exceeded quota: "+
			"small, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: "+
			"count/jobs.batch=1", name))
		return
	}
	if k.objects[kind+"/"+name] != nil {
		problem(w, 409, "AlreadyExists", fmt.Sprintf("%s %q already exists", kind, name))
		return
	}
	k.add(kind, o)
	switch kind {
	case "jobs":
		k.jobs++
		go k.control(o, k.jobs)
	case "pods":
		k.pods.Add(1)
		go k.run(o, podFault{})
	case "persistentvolumeclaims":
		o["status"] = map[string]any{"phase": "Bound"}
	}
	answer(w, 201, o)
}

// deleteObject deletes an object and the objects that it owns, and ends their processes.
func (k *kubernetes) deleteObject(name string) {
	o := k.objects[name]
	delete(k.objects, name)
	if o == nil {
		return
	}
	if cmd := k.running[strings.TrimPrefix(name, "pods/")]; cmd != nil {
		_ = cmd.Process.Kill() // the process may have exited
	}
	for other, owned := range k.objects {
		owners, _ := owned.at("metadata", "ownerReferences").([]any)
		for _, owner := range owners {
			if m, _ := owner.(map[string]any); m["uid"] == o.text("metadata", "uid") {
				k.deleteObject(other)
			}
		}
	}
	k.changed.Broadcast()
}

// control is the controller of a Job. It starts a pod for each index, several at a time, and
// another pod after a failure.
func (k *kubernetes) control(job object, number int) {
	slots := make(chan struct{}, job.number("spec", "parallelism"))
	var all sync.WaitGroup
	for index := range job.number("spec", "completions") {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			k.complete(job, podFault{number, index, 0})
		})
	}
	all.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	end := "Complete"
	if job.text("status", "failedIndexes") != "" {
		end = "Failed"
	}
	k.status(job)["conditions"] = []any{object{"type": end, "status": "True"}}
	k.changed.Broadcast()
}

func (*kubernetes) status(o object) map[string]any { m, _ := o["status"].(map[string]any); return m }

// complete runs pods for an index until one succeeds or too many have failed.
func (k *kubernetes) complete(job object, at podFault) {
	name := job.text("metadata", "name")
	if k.noPods {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.add("events", object{
			"metadata": map[string]any{"name": fmt.Sprint(name, at.index)}, "type": "Warning",
			"involvedObject": map[string]any{"name": name}, "reason": "FailedCreate",
			"message": fmt.Sprintf("Error creating: pods %q is forbidden: exceeded quota: small", name),
		})
		for k.objects["jobs/"+name] != nil {
			k.changed.Wait()
		}
		return
	}
	for failures := 0; ; at.attempt++ {
		k.mu.Lock()
		if k.objects["jobs/"+name] == nil {
			k.mu.Unlock()
			return
		}
		spec, _ := json.Marshal(job.at("spec", "template", "spec"))
		var pod object
		_ = json.Unmarshal(fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Pod", "metadata": {
			"name": "%[1]s-%[2]d-%[3]d", "labels": {"job-name": %[1]q},
			"annotations": {"batch.kubernetes.io/job-completion-index": "%[2]d"},
			"ownerReferences": [{"uid": "uid-of-jobs/%[1]s"}]}, "spec": %[4]s}`,
			name, at.index, at.attempt, spec), &pod)
		k.add("pods", pod)
		k.pods.Add(1)
		k.mu.Unlock()
		status := k.run(pod, at)
		k.mu.Lock()
		s := k.status(job)
		switch {
		case status == 0:
			s["succeeded"] = job.number("status", "succeeded") + 1
		case k.spared[at]: // podFailurePolicy: Ignore
			status = -1
		default:
			failures++
			if status != 2 && failures <= job.number("spec", "backoffLimitPerIndex") {
				status = -1
				break
			}
			list := strings.Split(job.text("status", "failedIndexes"), ",")
			s["failedIndexes"] = strings.Trim(strings.Join(append(list, fmt.Sprint(at.index)), ","), ",")
		}
		// A real status is an object of JSON, in which numbers are floats.
		if n, ok := s["succeeded"].(int); ok {
			s["succeeded"] = float64(n)
		}
		k.changed.Broadcast()
		k.mu.Unlock()
		if status >= 0 {
			return
		}
	}
}

// run is the kubelet: it runs a pod and returns the exit status.
func (k *kubernetes) run(pod object, at podFault) int {
	defer k.pods.Done()
	name := pod.text("metadata", "name")
	containers, _ := pod.at("spec", "containers").([]any)
	container := object(containers[0].(map[string]any))
	image := container.text("image")
	say := func(phase string, state, more object) {
		s := k.status(pod)
		s["phase"], s["containerStatuses"] = phase, []any{object{"name": "node", "state": state}}
		maps.Copy(s, more)
		k.changed.Broadcast()
	}
	program, pulled := k.images[image]
	if !pulled {
		k.mu.Lock()
		say("Pending", object{"waiting": object{
			"reason":  "ImagePullBackOff",
			"message": fmt.Sprintf("Back-off pulling image %q", image),
		}}, nil)
		for k.objects["pods/"+name] != nil {
			k.changed.Wait()
		}
		k.mu.Unlock()
		return 1
	}
	if hold := k.held[at]; hold != nil {
		k.mu.Lock()
		say("Pending", object{"waiting": object{"reason": "ContainerCreating"}}, nil)
		k.mu.Unlock()
		<-hold
	}
	cmd, err := k.process(pod, container, program, at.index)
	k.mu.Lock()
	log := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err == nil {
		err = cmd.Start()
	}
	if !assert.NoError(k.t, err) {
		k.mu.Unlock()
		return 1
	}
	k.running[name], k.logs[name] = cmd, log
	say("Running", object{"running": object{}}, nil)
	if k.objects["pods/"+name] == nil || k.killed[at] || k.spared[at] {
		_ = cmd.Process.Kill()
	}
	k.mu.Unlock()
	_ = cmd.Wait() // the process state has the result
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.running, name)
	status := cmd.ProcessState.ExitCode()
	phase, message := "Succeeded", ""
	if status != 0 {
		phase, message = "Failed", log.String()
	}
	if status < 0 {
		status = 128 + int(syscall.SIGKILL)
	}
	more := object{}
	if k.spared[at] {
		more["conditions"] = []any{object{"type": "DisruptionTarget", "status": "True"}}
	}
	say(phase, object{"terminated": object{"exitCode": status, "message": message}}, more)
	return status
}

// process returns the process of a pod, in a root that contains only the pod's mounts.
func (k *kubernetes) process(pod, container object, program string, index int) (*exec.Cmd, error) {
	root, err := os.MkdirTemp(k.dir, "pod")
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{"proc", "results", "experiment"} {
		err = os.Mkdir(filepath.Join(root, folder), 0o755)
		if err != nil {
			return nil, err
		}
	}
	volumes, _ := pod.at("spec", "volumes").([]any)
	for _, v := range volumes {
		v := object(v.(map[string]any))
		if name := v.text("configMap", "name"); name != "" {
			k.mu.Lock()
			config := k.objects["configmaps/"+name]
			k.mu.Unlock()
			items, _ := v.at("configMap", "items").([]any)
			err = mountConfig(filepath.Join(root, "experiment"), config, items)
		}
	}
	if err == nil {
		err = os.Chmod(root, 0o755)
	}
	if err == nil {
		err = os.Link(program, filepath.Join(root, "node"))
	}
	script := `mount --bind "$2" "$1/results" && mount --bind /proc "$1/proc" && root=$1 && shift 2 &&
		exec chroot --userspec=65532:65532 "$root" /node "$@"`
	args := []string{"--mount", "--propagation", "private", "sh", "-c", script, "sh", root, k.volume}
	list, _ := container["args"].([]any)
	for i, a := range list {
		if container.text("image") == otherVersion && i > 0 && list[i-1] == "--by" {
			a = "v0"
		}
		args = append(args, strings.ReplaceAll(fmt.Sprint(a), "$(JOB_COMPLETION_INDEX)",
			strconv.Itoa(index)))
	}
	cmd := exec.Command("unshare", args...)
	cmd.WaitDelay = time.Minute
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	return cmd, err
}

// mountConfig writes the files of a ConfigMap as the kubelet does: as symbolic links.
func mountConfig(dir string, config object, items []any) error {
	for _, i := range items {
		item := object(i.(map[string]any))
		text := []byte(config.text("data", item.text("key")))
		if coded := config.text("binaryData", item.text("key")); coded != "" {
			text, _ = base64.StdEncoding.DecodeString(coded)
		}
		path := filepath.Join(dir, "..2026", item.text("path"))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
		top, _, _ := strings.Cut(item.text("path"), "/")
		if err := os.Symlink("..data/"+top, filepath.Join(dir, top)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	return os.Symlink("..2026", filepath.Join(dir, "..data"))
}
