package emulation

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
)

// MaxFlows is the largest number of flows in real time: each flow needs two processes.
const MaxFlows = 64

// QUICProgram is the name of the program for QUIC. It is in a separate module: quic/.
const QUICProgram = "node-quic"

// CheckVirtual returns an error if an experiment cannot be run in virtual time.
func CheckVirtual(x *plan.Experiment) *UnsupportedError {
	for i := range x.Flows {
		if x.Flows[i].Protocol == plan.QUIC {
			return &UnsupportedError{
				Flow: i, Key: "protocol",
				What: "quic runs with --real only: it has goroutines and its own clock",
				Want: "--real, or protocol: rdt or tcp",
			}
		}
	}
	return nil
}

// UnsupportedError says why an experiment cannot be run in virtual or in real time.
type UnsupportedError struct {
	// Flow is the flow with the error; -1: the whole experiment. Key is the key with the error.
	Flow int
	Key  string
	// What describes the error, and Want the expected value.
	What, Want string
}

func (u *UnsupportedError) Error() string { return u.What + "; " + u.Want }

// CheckReal returns an error if an experiment cannot be run in real time. programs are
// implementations of additional protocols.
func CheckReal(x *plan.Experiment, programs map[plan.Protocol]string) *UnsupportedError {
	if n := len(x.Flows); n > MaxFlows {
		return &UnsupportedError{
			Flow: -1, Key: "flows",
			What: fmt.Sprintf("%d flows cannot run in real time: each needs two processes", n),
			Want: fmt.Sprintf("%d flows at most, or no --real", MaxFlows),
		}
	}
	if x.Path.IPv6 {
		return &UnsupportedError{
			Flow: -1, Key: "family", What: "IPv6 runs in virtual time only",
			Want: "family: 4, or no --real",
		}
	}
	for i := range x.Flows {
		f := &x.Flows[i]
		u := &UnsupportedError{Flow: i, Want: "another flow, or no --real"}
		switch app := &f.App; {
		case programs[f.Protocol] != "":
			continue
		case f.Protocol == plan.Notebook:
			u.Key = "protocol"
			u.What = "the notebook's own senders run in virtual time only"
			u.Want = "protocol: tcp, as in the corrected presets, or no --real"
		case f.Protocol == plan.QUIC:
			u.Key, u.What = "protocol", "no program for quic was found"
			u.Want = "`cd quic && go build -o ../bin/" + QUICProgram + " .`, which is found " +
				"in this program's folder and on PATH, or --end quic=PROGRAM"
		case app.Burst != nil:
			u.Key = "burst"
			u.What = "the burst is a thought experiment in rounds: it cannot run in real time"
		case app.Objects != nil && app.Objects.RDT.Push:
			u.Key = "rdt"
			u.What = "in real time, servers do not push objects: clients request them"
		case f.Protocol != plan.TCP && f.Protocol != plan.RCP && f.Protocol != plan.RDT:
			u.Key = "protocol"
			u.What = fmt.Sprintf("nodes do not support %s", f.Protocol)
		default:
			continue
		}
		return u
	}
	return nil
}
