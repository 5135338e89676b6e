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

// Where a pod of a Sweep has the experiment, and the volume for the results.
const (
	ExperimentFolder = "/experiment"
	ResultsFolder    = "/results"
)

// Sweep is an experiment as Kubernetes runs it: an Indexed Job of one pod for each part, with the
// experiment in a ConfigMap and the results on a volume that the pods share.
type Sweep struct {
	// Name is that of the Job and of the ConfigMap: a DNS label.
	Name string
	// Image is the container image. Its entry point is this program.
	Image string
	// Args are the arguments of the program. $(JOB_COMPLETION_INDEX) is the number of the pod.
	Args []string
	// Files are the experiment, by path below ExperimentFolder.
	Files map[string][]byte
	// Claim is the volume's. ClaimSize is its size if the manifests make it; empty: it exists.
	Claim, ClaimSize string
	// Pods is their number, of which AtOnce run at the same time; 0: all.
	Pods, AtOnce int
	// Time and Memory limit a pod. Memory is in bytes.
	Time   time.Duration
	Memory int64
}

const (
	// restarts is how often Kubernetes starts a failed part again. A pod that the cluster removes
	// does not count.
	restarts = 2
	// wrongUsage is the exit status of a part that will fail again.
	wrongUsage = 2
	// kept is for how long an ended Job stays, with its pods and their logs.
	kept = 7 * 24 * time.Hour
	// starting is the part of a pod's time in which its image is pulled.
	starting = 5 * time.Minute
	// user is the user and the group of a pod. The image has no other.
	user = 65532
	// mostFiles is the size of a ConfigMap, in bytes, less what is not data.
	mostFiles = 1<<20 - 16<<10
)

// Label returns a text as a DNS label.
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

// files are the data of the ConfigMap. Its keys have no slash: the pod's volume names the paths.
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

// Reader writes a pod that runs the program with the results, without the experiment.
func (s *Sweep) Reader() ([]byte, error) {
	return documents("reads the results", fields("apiVersion", "v1", "kind", "Pod",
		"metadata", s.metadata(), "spec", s.pod(false)))
}

// pod is the description of a pod that needs no right but the use of the volume.
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
