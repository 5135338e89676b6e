package examine

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Link is a link between the subject and the examiner.
type Link struct {
	Name string       // name of the subject's interface
	Addr netip.Prefix // the subject's address
	Peer netip.Addr   // the examiner's address
}

// Setup describes the network around a subject.
type Setup struct {
	Links []Link
	// Router makes the subject forward packets and speak RIP on all links.
	Router bool
	// Announce makes the examiner announce its own addresses by RIP. A subject whose links have no
	// prefixes learns its neighbors' addresses this way.
	Announce bool
}

// links is the number of links of a router. A host has only the first of them.
const links = 3

// setup returns the network for a router or a host: link i is the network 10.20+i.0.0/24, with the
// subject at .1 and the examiner at .2.
func setup(router bool) Setup {
	s := Setup{Router: router}
	n := 1
	if router {
		n = links
	}
	for i := range n {
		net := byte(20 + i)
		s.Links = append(s.Links, Link{
			Name: fmt.Sprintf("if%d", i),
			Addr: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, net, 0, 1}), 24),
			Peer: netip.AddrFrom4([4]byte{10, net, 0, 2}),
		})
	}
	return s
}

// Feature is something that a subject may lack without failing.
type Feature string

// The features that a subject claims in its profile or by its answers. A check that needs a missing
// feature is skipped.
const (
	FeatureRouter   Feature = "router"   // forwards packets
	FeatureRIP      Feature = "rip"      // speaks the course's RIP
	FeatureMasks    Feature = "masks"    // sends RIP entries with masks
	FeatureTest     Feature = "test"     // sends and prints packets of protocol 0
	FeatureTCP      Feature = "tcp"      // has TCP
	FeatureUser     Feature = "user"     // carries out a user's commands
	FeatureShutdown Feature = "shutdown" // can half-close connections
	FeatureFiles    Feature = "files"    // sends and receives files
	FeatureICMP     Feature = "icmp"     // answers echo requests
	FeatureMSS      Feature = "mss"      // sends the MSS option
	FeatureWScale   Feature = "wscale"   // uses window scaling
	FeatureSACK     Feature = "sack"     // sends selective acknowledgments
	FeatureStamps   Feature = "ts"       // sends timestamps
	FeatureFragment Feature = "reassembly"
	FeatureControl  Feature = "congestion" // uses congestion control: sends no large window at once
	FeatureTimers   Feature = "timers"     // has an RTO of at least 0.1 s
	FeatureLong     Feature = "long"       // has time for long checks; see Exam.Long
)

// features lists all features, for messages.
var features = []string{
	string(FeatureRouter), string(FeatureRIP), string(FeatureMasks), string(FeatureTest),
	string(FeatureTCP), string(FeatureUser), string(FeatureShutdown), string(FeatureFiles),
	string(FeatureICMP), string(FeatureMSS), string(FeatureWScale), string(FeatureSACK),
	string(FeatureStamps), string(FeatureFragment), string(FeatureControl), string(FeatureTimers),
	string(FeatureLong),
}

// Subject is a stack that can be started.
type Subject interface {
	// Name describes the subject in reports.
	Name() string
	// Start starts the subject on the links of s. It may change their addresses.
	Start(s *Setup) (Run, error)
	// Has reports whether the subject claims a feature. An Exam itself finds the features that show
	// in packets, such as TCP options.
	Has(f Feature) bool
	// RIPPeriod and RIPTimeout return the subject's RIP times.
	RIPPeriod() time.Duration
	RIPTimeout() time.Duration
}

// Arrival is a packet from the subject. Data is not changed later.
type Arrival struct {
	At   clock.Time
	Link int
	Data []byte
}

// Run is a running subject with its clock. Only one goroutine uses it.
type Run interface {
	Network
	User
	// Ended returns why the subject has ended or cannot continue; nil while it runs.
	Ended() *Ending
	// Close ends the subject.
	Close()
}

// Network has the links and the clock of a started subject.
type Network interface {
	// Now returns the time of the run.
	Now() clock.Time
	// Send sends a packet to the subject on a link.
	Send(link int, packet []byte) error
	// Receive returns the next packet from the subject. It returns false if none arrives before the
	// time until, or if the subject has ended.
	Receive(until clock.Time) (Arrival, bool)
}

// User is the user of the subject.
type User interface {
	// Do executes a command. It returns ErrUnsupported if the subject has no such command.
	Do(c Command) error
	// Printed returns what the subject's user has seen so far.
	Printed() string
	// File returns the file that a CommandReceiveFile has stored, and whether it is complete.
	File() ([]byte, bool)
}

// CommandKind is the kind of a user's command.
type CommandKind int

// The commands.
const (
	CommandListen      CommandKind = iota // accept connections on Port
	CommandConnect                        // connect to Addr and Port
	CommandWrite                          // write Data to the connection
	CommandRead                           // read up to N bytes from the connection
	CommandShutdown                       // close the sending side
	CommandClose                          // close the connection
	CommandSendFile                       // send the file Data to Addr and Port
	CommandReceiveFile                    // store the file that arrives at Port
	CommandUp                             // switch link N on
	CommandDown                           // switch link N off
	CommandTest                           // send Data in a packet of protocol 0 to Addr
)

// Command is something that a user does at the subject.
type Command struct {
	Kind CommandKind
	Addr netip.Addr
	Port uint16
	N    int
	Data []byte
}

// ErrUnsupported is the error of Do for a command that the subject does not have.
var ErrUnsupported = errors.New("the stack has no such command")

// Ending says why a subject ended before the check did.
type Ending struct {
	Verdict Verdict // Crashed, Exited, Hung or Flooded
	Detail  string
}

// Verdict is the result of a check.
type Verdict int

// The verdicts.
const (
	Pass    Verdict = iota
	Fail            // the subject's behavior differs from what the check expects
	Blocked         // the subject failed before the steps that test the check's requirement
	Skipped         // the subject does not claim a feature
	Flaky           // repeated runs had different results
	Crashed         // the subject crashed
	Exited          // the subject exited before the examiner asked it to
	Hung            // the subject did not start, or stopped answering
	Flooded         // the subject sent or printed without end
	Void            // the examiner itself failed, was late or was stopped
)

var verdicts = [...]string{
	"pass", "fail", "blocked", "skipped", "flaky", "crashed", "exited", "hung", "flooded", "void",
}

func (v Verdict) String() string { return verdicts[v] }

// MarshalText returns the verdict's name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// EndError is the error of a subject that did not start.
type EndError struct{ Ending }

func (e *EndError) Error() string { return e.Detail }
