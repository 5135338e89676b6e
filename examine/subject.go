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
	Name string       // of the subject's interface
	Addr netip.Prefix // the subject's address
	Peer netip.Addr   // the examiner's address
}

// Setup describes the network around a subject.
type Setup struct {
	Links []Link
	// Router makes the subject forward packets and speak RIP on all links.
	Router bool
	// Announce makes the examiner announce its own addresses by RIP: a subject whose links have no
	// prefixes needs this to learn its neighbors' addresses.
	Announce bool
}

// links is how many links a router has. A host has the first of them.
const links = 3

// setup returns the network for a router or a host: link i is 10.20+i.0.0/24, the subject is .1 and
// the examiner .2.
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
	FeatureMasks    Feature = "masks"    // its RIP entries have masks
	FeatureTest     Feature = "test"     // sends and prints packets of protocol 0
	FeatureTCP      Feature = "tcp"      // has TCP
	FeatureUser     Feature = "user"     // carries out commands
	FeatureShutdown Feature = "shutdown" // half-closes
	FeatureFiles    Feature = "files"    // sends and receives files
	FeatureICMP     Feature = "icmp"     // answers echo requests
	FeatureMSS      Feature = "mss"      // sends the MSS option
	FeatureWScale   Feature = "wscale"   // scales windows
	FeatureSACK     Feature = "sack"     // sends selective acknowledgments
	FeatureStamps   Feature = "ts"       // sends timestamps
	FeatureFragment Feature = "reassembly"
	FeatureControl  Feature = "congestion" // does not send a large window at once
	FeatureTimers   Feature = "timers"     // its RTO is at least 0.1 s
	FeatureLong     Feature = "long"       // has time for long checks; see Exam.Long
)

// features lists all features for messages.
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
	// Has reports whether the subject claims a feature. Features that show in its packets, such as
	// options of TCP, are found by an Exam itself.
	Has(f Feature) bool
	// RIPPeriod and RIPTimeout are the subject's times of RIP.
	RIPPeriod() time.Duration
	RIPTimeout() time.Duration
}

// Arrival is a packet from the subject. Data is not changed later.
type Arrival struct {
	At   clock.Time
	Link int
	Data []byte
}

// Run is a started subject, with its clock. It is used by one goroutine.
type Run interface {
	Network
	User
	// Ended returns why the subject has ended or cannot continue; nil if it runs.
	Ended() *Ending
	// Close ends the subject.
	Close()
}

// Network is the links and the clock of a started subject.
type Network interface {
	// Now returns the time of the run.
	Now() clock.Time
	// Send sends a packet to the subject on a link.
	Send(link int, packet []byte) error
	// Receive returns the next packet that the subject has sent, or false if none came before the
	// time is until, or if the subject has ended.
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

// CommandKind is what a user does at the subject.
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

// ErrUnsupported is what Do returns for a command that the subject does not have.
var ErrUnsupported = errors.New("the subject has no such command")

// Ending is why a subject ended before the check did.
type Ending struct {
	Verdict Verdict // Crashed, Exited, Hung or Flooded
	Detail  string
}

// Verdict is the result of a check.
type Verdict int

// The verdicts.
const (
	Pass    Verdict = iota
	Fail            // the subject did something else than the check expects
	Blocked         // the subject did not get as far as the check's subject matter
	Skipped         // the subject does not claim a feature
	Flaky           // equal runs had different results
	Crashed         // the subject crashed
	Exited          // the subject exited before the examiner asked it to
	Hung            // the subject did not start, or did not answer any more
	Flooded         // the subject sent or printed without end
	Void            // the examiner itself could not run
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
