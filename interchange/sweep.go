package interchange

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// Paths in a pod of a Sweep: the experiment, and the volume for the results.
const (
	ExperimentFolder = "/experiment"
	ResultsFolder    = "/results"
)

// Sweep is an experiment on Kubernetes: an Indexed Job with one pod for each part, the experiment
// in a ConfigMap, and the results on a volume that the pods share.
type Sweep struct {
	// Name is the name of the Job and of the ConfigMap: a DNS label.
	Name string
	// Image is the container image. Its entry point is this program.
	Image string
	// Args are the arguments of the program. $(JOB_COMPLETION_INDEX) stands for the number of the
	// pod.
	Args []string
	// Files has the experiment's files, by path below ExperimentFolder.
	Files map[string][]byte
	// Claim is the volume claim. ClaimSize is the size of the claim if the manifests create it;
	// empty if the claim exists.
	Claim, ClaimSize string
	// Pods is the number of pods, AtOnce the number that may run in parallel; 0: all.
	Pods, AtOnce int
	// Time and Memory are the limits of a pod. Memory is in bytes.
	Time   time.Duration
	Memory int64
}

const (
	// restarts is how often Kubernetes restarts a failed part. Pods that the cluster removed do not
	// count.
	restarts = 2
	// wrongUsage is the exit status of a part that would fail again.
	wrongUsage = 2
	// kept is how long a finished Job remains, with its pods and their logs.
	kept = 7 * 24 * time.Hour
	// starting is the part of a pod's time limit that is for pulling the image.
	starting = 5 * time.Minute
	// user is the user and the group of a pod. The image has no others.
	user = 65532
	// mostFiles is the limit of a ConfigMap's data, in bytes.
	mostFiles = 1<<20 - 16<<10
)

// Label converts a text to a DNS label.
func Label(text string) string { return naming{label: true}.fit(text) }

func (s *Sweep) metadata() any {
	return fields("name", s.Name, "labels", fields("app.kubernetes.io/name", "tidepool",
		"app.kubernetes.io/instance", s.Name))
}

// Manifests writes the Job, its ConfigMap and the volume claim.
func (s *Sweep) Manifests() ([]byte, error) {
	var list []any
	if s.ClaimSize != "" {
		list = append(list, fields(
			"apiVersion", "v1", "kind", "PersistentVolumeClaim",
			"metadata", fields("name", s.Claim),
			"spec", fields("accessModes", []string{"ReadWriteMany"},
				"resources", fields("requests", fields("storage", s.ClaimSize))),
		))
	}
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	list = append(list, append(fields(
		"apiVersion", "v1", "kind", "ConfigMap", "metadata", s.metadata()), files...),
		fields("apiVersion", "batch/v1", "kind", "Job", "metadata", s.metadata(), "spec", fields(
			"completions", s.Pods,
			"parallelism", min(cmp.Or(s.AtOnce, s.Pods), s.Pods),
			"completionMode", "Indexed",
			"backoffLimitPerIndex", restarts,
			"maxFailedIndexes", (s.Pods+1)/2,
			"podFailurePolicy", fields("rules", []any{
				fields("action", "Ignore", "onPodConditions",
					[]any{fields("type", "DisruptionTarget", "status", "True")}),
				fields("action", "FailIndex", "onExitCodes", fields(
					"containerName", "node", "operator", "In", "values", []int{wrongUsage})),
			}),
			"ttlSecondsAfterFinished", int(kept.Seconds()),
			"template", fields("spec", s.pod(true)),
		)))
	return documents("kubectl create -f runs the experiment.", list...)
}

// files returns the data of the ConfigMap. Its keys contain no slash: the pod's volume maps them to
// paths.
func (s *Sweep) files() (data []yaml.MapItem, err error) {
	texts, others := fields(), fields()
	size := 0
	for i, path := range slices.Sorted(maps.Keys(s.Files)) {
		size += len(s.Files[path])
		if utf8.Valid(s.Files[path]) {
			texts = append(texts, fields(fileKey(i), string(s.Files[path]))...)
		} else {
			text := base64.StdEncoding.EncodeToString(s.Files[path])
			others = append(others, fields(fileKey(i), text)...)
		}
	}
	if size > mostFiles {
		return nil, fmt.Errorf("the experiment's files have %d bytes; Kubernetes passes %d to a "+
			"pod: use shorter traces, or --on slurm", size, mostFiles)
	}
	data = fields("data", texts)
	if len(others) > 0 {
		data = append(data, fields("binaryData", others)...)
	}
	return data, nil
}

func fileKey(i int) string { return fmt.Sprintf("file-%d", i) }

// Reader writes a pod that runs the program on the results. The pod does not get the experiment.
func (s *Sweep) Reader() ([]byte, error) {
	return documents("reads the results", fields("apiVersion", "v1", "kind", "Pod",
		"metadata", s.metadata(), "spec", s.pod(false)))
}

// pod returns the specification of a pod. The pod needs no permission except to use the volume.
func (s *Sweep) pod(experiment bool) any {
	size := fields("cpu", "1", "memory", fmt.Sprintf("%dMi", s.Memory>>20))
	mounts := []any{fields("name", "results", "mountPath", ResultsFolder)}
	volumes := []any{fields("name", "results",
		"persistentVolumeClaim", fields("claimName", s.Claim))}
	if experiment {
		var items []any
		for i, path := range slices.Sorted(maps.Keys(s.Files)) {
			items = append(items, fields("key", fileKey(i), "path", path))
		}
		mounts = append(mounts, fields("name", "experiment", "mountPath", ExperimentFolder,
			"readOnly", true))
		volumes = append(volumes, fields("name", "experiment",
			"configMap", fields("name", s.Name, "items", items)))
	}
	return fields(
		"restartPolicy", "Never",
		"activeDeadlineSeconds", int((s.Time + starting).Seconds()),
		"automountServiceAccountToken", false,
		"enableServiceLinks", false,
		"securityContext", fields("runAsNonRoot", true, "runAsUser", user, "runAsGroup", user,
			"fsGroup", user, "fsGroupChangePolicy", "OnRootMismatch",
			"seccompProfile", fields("type", "RuntimeDefault")),
		"containers", []any{fields(
			"name", "node",
			"image", s.Image,
			"imagePullPolicy", "IfNotPresent",
			"args", s.Args,
			"resources", fields("requests", size, "limits", size),
			"securityContext", fields("allowPrivilegeEscalation", false,
				"readOnlyRootFilesystem", true, "capabilities", fields("drop", []string{"ALL"})),
			"terminationMessagePolicy", "FallbackToLogsOnError",
			"volumeMounts", mounts,
		)},
		"volumes", volumes,
	)
}
