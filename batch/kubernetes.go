package batch

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/interchange"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Kubernetes queues an Indexed Job with kubectl(1), with the user's configuration. The pods share a
// volume. Results are read from the log of a pod, because the image contains no other program.
type Kubernetes struct{}

// kubectl is the command. Its hints match errors of the API and reasons for which pods wait.
var kubectl = &system{
	absent: "install it (Debian: kubernetes-client), or use --on local",
	silent: []string{
		"onnection to the server", "nable to connect to the server", "onnection refused",
		"imed out", "imeout", "unexpected EOF", "currently unable to handle the request",
	},
	retry: "`kubectl config get-contexts` lists the clusters; choose one with -- --context=NAME",
	hints: []hint{
		{
			"exceeded quota",
			"use fewer --at-once, a lower --memory, or another namespace: -- --namespace=NAME",
		},
		{"maximum memory usage", "set a lower limit with --memory MB"},
		{"nsufficient", "no machine has that much free: wait, or use a lower --memory"},
		{
			"persistentvolumeclaim",
			"`kubectl get pvc` lists the claims; choose one with --claim NAME",
		},
		{"PersistentVolumeClaim", "`kubectl describe pvc` says why the claim is not bound"},
		{"unknown field", "the cluster must be Kubernetes 1.29 or newer"},
		{
			"forbidden",
			"ask for the right to create jobs, configmaps and pods and to read logs, or use " +
				"another namespace: -- --namespace=NAME",
		},
		{"provide credentials", "log in to the cluster again"},
		{"Unauthorized", "log in to the cluster again"},
		{
			"context",
			"`kubectl config get-contexts` lists the clusters; choose one with -- --context=NAME",
		},
		{"namespace", "`kubectl get namespaces` lists them; choose one with -- --namespace=NAME"},
	},
	patience: 2 * time.Minute,
}

func (j *Job) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	return kubectl.run(ctx, stdin, "kubectl", slices.Concat(args, j.Extra)...)
}

// object reads an object, or a list of objects, from the API.
func (j *Job) object(ctx context.Context, into any, args ...string) error {
	text, err := j.kubectl(ctx, "", append([]string{"get"}, args...)...)
	if err == nil {
		err = json.Unmarshal([]byte(text), into)
	}
	return err
}

func notFound(err error) bool {
	e, ok := errors.AsType[*refused](err)
	return ok && strings.Contains(e.output, "NotFound")
}

// Name is the value of --on.
func (*Kubernetes) Name() string { return "kubernetes" }

// InPod returns the paths in the pod of the experiment and of a local folder's results.
func InPod(dir string) (experiment, results string) {
	return interchange.ExperimentFolder, path.Join(interchange.ResultsFolder, filepath.Base(dir))
}

// mostPods limits a Job far below the API's 100,000, because each pod is an API object.
const mostPods = 10_000

// Limit returns mostPods.
func (*Kubernetes) Limit(context.Context) (int, error) { return mostPods, nil }

// Ready returns an error if a job cannot be queued: the cluster does not answer or lacks the
// volume.
func (*Kubernetes) Ready(ctx context.Context, j *Job) error {
	_, err := j.claimed(ctx)
	return err
}

// claimed reports whether the volume claim exists. It returns an error if the claim cannot be used.
func (j *Job) claimed(ctx context.Context) (bool, error) {
	var claim struct {
		Spec   struct{ StorageClassName string }
		Status struct{ Phase string }
	}
	err := j.object(ctx, &claim, "persistentvolumeclaim", j.Pod.Claim, "-o", "json")
	if notFound(err) {
		if j.Pod.ClaimSize != "" {
			return false, nil
		}
		return false, fmt.Errorf("no volume claim %q: choose another with --claim NAME (`kubectl "+
			"get pvc` lists them), or create it with --claim-size 10Gi", j.Pod.Claim)
	}
	if err != nil || claim.Status.Phase == "Bound" {
		return true, err
	}
	// Some storage classes bind a claim only when the first pod needs it.
	var class struct{ VolumeBindingMode string }
	err = j.object(ctx, &class, "storageclass", claim.Spec.StorageClassName, "-o", "json")
	if errors.Is(err, ErrSilent) {
		return true, err
	}
	// If the user may not read classes, the pods will report the problem.
	unknown := err != nil && !notFound(err)
	if claim.Status.Phase == "Pending" &&
		(unknown || class.VolumeBindingMode == "WaitForFirstConsumer") {
		return true, nil
	}
	return true, fmt.Errorf("the volume claim %q is not bound: it is %s; `kubectl describe pvc "+
		"%s` says why", j.Pod.Claim, claim.Status.Phase, j.Pod.Claim)
}

// sweep describes the pods for these parts. The index of a pod chooses one of them.
func (j *Job) sweep(name string, parts []int) *interchange.Sweep {
	return &interchange.Sweep{
		Name: name, Image: j.Pod.Image, Claim: j.Pod.Claim, ClaimSize: j.Pod.ClaimSize,
		Files: j.Files,
		Args:  append(slices.Clone(j.Args), among+ranges(parts), "--index=$(JOB_COMPLETION_INDEX)"),
		Pods:  len(parts), AtOnce: j.AtOnce, Time: j.Time, Memory: j.Memory,
	}
}

// among is the prefix of the argument with the list of parts. --index selects one of them.
const among = "--among="

func (j *Job) label() string { return "tidepool-" + interchange.Label(j.Name) }

// Script returns the Kubernetes manifests.
func (*Kubernetes) Script(j *Job, parts []int) (string, error) {
	text, err := j.sweep(j.label(), parts).Manifests()
	return string(text), err
}

// unique appends a few random letters to a name.
func unique(name string) string { return name + "-" + strings.ToLower(rand.Text()[:5]) }

// Submit creates the Job and its ConfigMap, which the cluster deletes together.
func (k *Kubernetes) Submit(ctx context.Context, j *Job, parts []int) (string, error) {
	exists, err := j.claimed(ctx)
	if err != nil {
		return "", err
	}
	s := j.sweep(unique(j.label()), parts)
	if exists {
		s.ClaimSize = ""
	}
	text, err := s.Manifests()
	if err == nil {
		err = result.WriteFile(filepath.Join(j.Dir, folder, "job.yaml"), text)
	}
	if err != nil {
		return "", err
	}
	if j.Task != "" && j.Engine == k.Name() {
		if err := j.remove(ctx, j.Task); err != nil {
			return "", err
		}
	}
	out, err := j.kubectl(ctx, string(text), "create", "-f", "-", "-o",
		`jsonpath={.kind}{" "}{.metadata.uid}{"\n"}`)
	if err != nil {
		return "", errors.Join(err, j.remove(context.WithoutCancel(ctx), s.Name))
	}
	_, uid, _ := strings.Cut(out, "Job ")
	owner, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []any{
		map[string]any{
			"apiVersion": "batch/v1", "kind": "Job", "name": s.Name, "uid": strings.TrimSpace(uid),
		},
	}}})
	if err == nil {
		_, err = j.kubectl(ctx, "", "patch", "configmap", s.Name, "--type=merge", "-p",
			string(owner))
	}
	return s.Name, err
}

func (j *Job) remove(ctx context.Context, name string) error {
	_, err := j.kubectl(ctx, "", "delete", "job,configmap", "--ignore-not-found", "--wait=false",
		"-l", "app.kubernetes.io/instance="+name)
	return err
}

// Tasks asks for the status of the Job. If no pod runs, it also asks for the reason.
func (*Kubernetes) Tasks(ctx context.Context, j *Job) (Tasks, error) {
	var job struct {
		Metadata struct{ Namespace string }
		Spec     struct{ Completions int }
		Status   struct {
			Ready, Succeeded int
			FailedIndexes    string
			Conditions       []condition
		}
	}
	err := j.object(ctx, &job, "job", j.Task, "-o", "json")
	if notFound(err) {
		return Tasks{}, nil // the Job was deleted
	}
	if err != nil {
		return Tasks{}, err
	}
	s := job.Status
	t := Tasks{Done: j.Parts - job.Spec.Completions + s.Succeeded}
	for _, c := range s.Conditions {
		if (c.Type == "Complete" || c.Type == "Failed") && c.Status == "True" {
			return t, nil
		}
	}
	failed, err := numbers(s.FailedIndexes)
	if err != nil {
		return t, err
	}
	t.Running = s.Ready
	t.Waiting = max(0, job.Spec.Completions-s.Succeeded-len(failed)-s.Ready)
	if t.Waiting+t.Running == 0 {
		t.Waiting = 1 // the Job is about to finish
	}
	if t.Running > 0 {
		return t, nil
	}
	var fatal bool
	t.Reason, fatal, err = j.why(ctx, job.Metadata.Namespace, j.Task)
	if fatal && s.Succeeded == 0 && err == nil {
		return t, errors.Join(errors.New(t.Reason), j.remove(ctx, j.Task))
	}
	return t, err
}

// Gather saves the messages of failed pods, and copies the results from the volume.
func (*Kubernetes) Gather(ctx context.Context, j *Job) (bool, error) {
	_, err := j.claimed(ctx)
	if err == nil {
		err = j.complaints(ctx)
	}
	if err != nil {
		return false, err
	}
	for range 3 { // try again if the results change while they are being read
		var a archive
		for err = nil; err == nil && !a.whole(); {
			err = j.piece(ctx, &a)
		}
		if err == nil {
			return true, a.unpack(j.Dir)
		}
		if !errors.Is(err, errCut) {
			break
		}
	}
	return false, err
}

// complaints saves the messages of failed pods as their parts' logs. It returns an error if the
// parts would fail again.
func (j *Job) complaints(ctx context.Context) error {
	if j.Task == "" {
		return nil
	}
	var job struct{ Metadata struct{ Namespace string } }
	err := j.object(ctx, &job, "job", j.Task, "-o", "json")
	if notFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	pods, err := j.pods(ctx, job.Metadata.Namespace, "Failed", 100)
	if err != nil {
		return err
	}
	for i := range pods {
		part, err := pods[i].part()
		if err != nil {
			return err
		}
		output, status := pods[i].lastLine()
		if strings.Contains(output, "unknown flag") {
			output += "; submit … --image NAME names an image of this version"
		}
		if status == 2 {
			return errors.Join(fmt.Errorf("part %d: %s", part, output), j.remove(ctx, j.Task))
		}
		if err := result.WriteFile(j.log(part), []byte(output+"\n")); err != nil {
			return err
		}
	}
	return nil
}

// piece reads the next piece of the results from a separate pod.
func (j *Job) piece(ctx context.Context, a *archive) error {
	_, dir := InPod(j.Dir)
	s := &interchange.Sweep{
		Name: unique(j.label() + "-read"), Image: j.Pod.Image, Claim: j.Pod.Claim,
		Time: 10 * time.Minute, Memory: 256 << 20,
		Args: []string{"lab", "collect", dir, "--archive", strconv.Itoa(a.next)},
	}
	text, err := s.Reader()
	if err == nil {
		_, err = j.kubectl(ctx, string(text), "create", "-f", "-")
	}
	if err != nil {
		return err
	}
	err = j.await(ctx, s.Name)
	if err == nil {
		var log string
		if log, err = j.kubectl(ctx, "", "logs", s.Name); err == nil {
			err = a.add(log)
		}
		if errors.Is(err, errCut) { // the log can be read again
			if log, err = j.kubectl(ctx, "", "logs", s.Name); err == nil {
				err = a.add(log)
			}
		}
	}
	_, gone := j.kubectl(context.WithoutCancel(ctx), "", "delete", "pod", s.Name, "--wait=false",
		"--ignore-not-found")
	if err == nil {
		err = gone
	}
	return err
}

// await waits until a pod has finished.
func (j *Job) await(ctx context.Context, name string) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		var p pod
		if err := j.object(ctx, &p, "pod", name, "-o", "json"); err != nil {
			return err
		}
		switch p.Status.Phase {
		case "Succeeded":
			return nil
		case "Failed":
			if p.interrupted() {
				return errCut
			}
			output, _ := p.lastLine()
			return fmt.Errorf("reading the volume claim %s: %s", j.Pod.Claim, output)
		}
		if why, fatal := p.why(); fatal {
			return errors.New(why)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pods returns some pods of the Job in a phase.
func (j *Job) pods(ctx context.Context, namespace, phase string, most int) ([]pod, error) {
	var list struct{ Items []pod }
	err := j.object(ctx, &list, "--raw", query(namespace, "pods", most, map[string]string{
		"labelSelector": "job-name=" + j.Task, "fieldSelector": "status.phase=" + phase,
	}))
	return list.Items, err
}

// query returns the API path of a list. kubectl get cannot limit a list.
func query(namespace, kind string, most int, selectors map[string]string) string {
	v := url.Values{"limit": {strconv.Itoa(most)}}
	for key, selector := range selectors {
		v.Set(key, selector)
	}
	return "/api/v1/namespaces/" + namespace + "/" + kind + "?" + v.Encode()
}

// why returns why no pod of a Job runs. If fatal is set, waiting does not help.
func (j *Job) why(ctx context.Context, namespace, task string) (string, bool, error) {
	pods, err := j.pods(ctx, namespace, "Pending", 1)
	if err != nil {
		return "", false, err
	}
	name := task
	if len(pods) > 0 {
		if why, fatal := pods[0].why(); why != "" {
			return why, fatal, nil
		}
		name = pods[0].Metadata.Name
	}
	var events struct {
		Items []struct{ Type, Message string }
	}
	err = j.object(ctx, &events, "--raw", query(namespace, "events", 10, map[string]string{
		"fieldSelector": "involvedObject.name=" + name + ",type=Warning",
	}))
	if _, ok := errors.AsType[*refused](err); ok || err == nil && len(events.Items) == 0 {
		return "", false, nil // the user may not read events
	}
	if err != nil {
		return "", false, err
	}
	output := events.Items[len(events.Items)-1].Message
	return kubectl.advised(strings.Join(strings.Fields(output), " ")), false, nil
}
