package batch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type condition struct{ Type, Status, Reason, Message string }

// pod has the fields of the API's pod object that this package uses.
type pod struct {
	Metadata struct {
		Name        string
		Annotations map[string]string
	}
	Spec struct {
		Containers []struct {
			Image string
			Args  []string
		}
	}
	Status struct {
		Phase, Reason, Message string
		Conditions             []condition
		ContainerStatuses      []struct {
			State struct {
				Waiting    struct{ Reason, Message string }
				Terminated struct {
					ExitCode        int
					Reason, Message string
				}
			}
		}
	}
}

// part returns the number of the part that a pod of a Job runs.
func (p *pod) part() (int, error) {
	for _, c := range p.Spec.Containers {
		for _, a := range c.Args {
			if list, found := strings.CutPrefix(a, among); found {
				return Index(list,
					p.Metadata.Annotations["batch.kubernetes.io/job-completion-index"])
			}
		}
	}
	return 0, fmt.Errorf("pod %s: has no tidepool container", p.Metadata.Name)
}

// interrupted reports whether the cluster removed the pod because a machine was reclaimed or
// drained.
func (p *pod) interrupted() bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c condition) bool {
		return c.Type == "DisruptionTarget" && c.Status == "True"
	})
}

// lastLine returns a failed pod's exit status and its last line, or the cluster's reason if there
// is no line.
func (p *pod) lastLine() (string, int) {
	why, status := strings.TrimSpace(p.Status.Reason+" "+p.Status.Message), 0
	for _, c := range p.Status.ContainerStatuses {
		t := c.State.Terminated
		status = t.ExitCode
		lines := strings.Split(strings.TrimSpace(t.Message), "\n")
		switch last := lines[len(lines)-1]; {
		case t.Reason != "" && t.Reason != "Error" && t.Reason != "Completed":
			why = strings.TrimSpace(t.Reason + " " + last)
		case last != "":
			why = last
		case why == "":
			why = fmt.Sprintf("exit status %d", status)
		}
	}
	return why, status
}

// why returns why a pod has not started; empty if unknown. If fatal is set, waiting does not help.
func (p *pod) why() (string, bool) {
	for i, c := range p.Status.ContainerStatuses {
		w := c.State.Waiting
		output := strings.TrimSpace(strings.TrimSuffix(w.Reason+": "+w.Message, ": "))
		switch w.Reason {
		case "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull":
			return fmt.Sprintf("image %q cannot be pulled: %s; submit … --image NAME names one "+
					"that the cluster can pull", p.Spec.Containers[i].Image, output),
				w.Reason != "ErrImagePull"
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return output, true
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == "PodScheduled" && c.Status == "False" {
			return kubectl.advised(c.Message), false
		}
	}
	return "", false
}

// Index returns the number at a position, from 0, of a list of ranges.
func Index(list, place string) (int, error) {
	all, err := numbers(list)
	if err != nil {
		return 0, err
	}
	at, err := strconv.Atoi(place)
	if err != nil || at < 0 || at >= len(all) {
		return 0, fmt.Errorf("index %q: must be 0 to %d, a position in the list %s of parts", place,
			len(all)-1, list)
	}
	return all[at], nil
}

func numbers(list string) (all []int, err error) {
	for word := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(word, "-")
		if !isRange {
			last = first
		}
		a, err := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		if word == "" && list == "" {
			return nil, nil
		}
		if err != nil || err2 != nil || a < 0 || b < a || b-a > 1<<20 {
			return nil, fmt.Errorf("%q: must be numbers and ranges such as 0-3,7", list)
		}
		for n := a; n <= b; n++ {
			all = append(all, n)
		}
	}
	return all, nil
}
