package control

import "reflect"

// Kind describes one kind of request, for packages that send requests over a connection.
type Kind struct {
	// Name is the request's name: "send-file".
	Name    string
	Request reflect.Type
	Answer  reflect.Type
	// Resource is the name of what a read-only request reads; empty: the request has effects.
	Resource string
	// Stream marks requests that only read, and continue until they are stopped.
	Stream bool
	// Files are the names of the fields that name files or directories of the node's machine.
	Files []string
}

// Kinds returns all kinds of requests.
func Kinds() []Kind {
	return []Kind{
		look[About]("about", "about"), look[Interfaces]("interfaces", "interfaces"),
		look[Neighbors]("neighbors", "neighbors"), look[Routes]("routes", "routes"),
		look[RIP]("rip", "rip"), look[Sockets]("sockets", "sockets"),
		look[RCPSockets]("rcp-sockets", "rcp"), look[RDTFlows]("rdt-flows", "rdt"),
		look[Doors]("doors", "doors"), look[TCPCounters]("tcp-counters", "tcp"),
		look[Show]("show", "settings"),
		look[Loss]("loss", "loss"), look[Impairments]("impairments", "impairments"),
		act[SetLink]("set-link"), act[SetLoss]("set-loss"), act[Impair]("impair"),
		look[NATs]("nat", "nat"), act[SetNAT]("set-nat"), act[ClearNAT]("clear-nat"),
		act[NATServe]("nat-serve"), act[NATProbe]("nat-probe"),
		act[ClearCounters]("clear-counters"), act[AddRoute]("add-route"),
		act[DelRoute]("del-route"), act[Set]("set"), act[Verbose]("verbose"),
		look[Captures]("captures", "captures"),
		flow[Record]("capture", "File"), flow[Trace]("trace"), flow[Samples]("samples"),
		act[StartCapture]("start-capture", "File"), act[StopCapture]("stop-capture"),
		act[PcapStart]("pcap-start", "File"), act[PcapStop]("pcap-stop"),
		act[SendTest]("send-test"), act[Ping]("ping"), act[Traceroute]("traceroute"),
		act[Listen]("listen"), act[Connect]("connect"), act[Write]("write"), act[Read]("read"),
		act[Window]("window"), act[Shutdown]("shutdown"), act[Close]("close"),
		act[Congestion]("congestion"), act[ListenUDP]("listen-udp"), act[SendUDP]("send-udp"),
		act[SendFile]("send-file", "Path"), act[RecvFile]("recv-file", "Path"),
		look[Transfers]("transfers", "transfers"), act[StopTransfer]("stop-transfer"),
		act[Serve]("serve", "Dir"), act[Fetch]("fetch", "Path"),
		act[RCPEcho]("rcp-echo"), act[RCPClose]("rcp-close"), act[RCPCount]("rcp-count"),
		act[RDTServe]("rdt-serve", "Paths"), act[RDTClose]("rdt-close"), act[RDTList]("rdt-list"),
		act[RDTFetch]("rdt-fetch", "Dir"),
		act[Publish]("publish"), act[Expose]("expose"), act[Splice]("splice"), act[Socks]("socks"),
		act[CloseDoor]("close-door"), act[Reload]("reload"),
		act[ServeSmall]("serve-small"), act[Echo]("echo"),
		look[DNS]("dns", "dns"), act[SetDNS]("set-dns"), act[Resolve]("resolve"),
		act[Perf]("perf"), act[PerfServe]("perf-serve"), act[PerfClose]("perf-close"),
		look[PerfServers]("perf-servers", "perf"),
	}
}

func act[R Request[A], A any](name string, files ...string) Kind {
	return Kind{
		Name: name, Request: reflect.TypeFor[R](), Answer: reflect.TypeFor[A](), Files: files,
	}
}

func flow[R Request[A], A any](name string, files ...string) Kind {
	k := act[R](name, files...)
	k.Stream = true
	return k
}

func look[R Request[A], A any](name, resource string) Kind {
	k := act[R](name)
	k.Resource = resource
	return k
}

// Events returns one event of each kind.
func Events() []Event {
	return []Event{
		TestReceived{},
		Accepted{},
		SocketClosed{},
		Datagram{},
		Undelivered{},
		Transferring{},
		TransferEnded{},
		Segment{},
		NeighborChanged{},
		LinkChanged{},
		Message{},
		RIPNews{},
		PerfEnded{},
	}
}

// Sentinels returns the named errors.
func Sentinels() []error {
	return []error{
		ErrUsage, ErrUnsupported, ErrNoSuchSocket, ErrNoSuchObject, ErrNoSuchInterface, ErrNoRoute,
		ErrRouteExists, ErrNoSuchRoute, ErrInterfaceDown, ErrPortInUse, ErrNoPorts, ErrRefused,
		ErrReset, ErrTimeout, ErrUnreachable, ErrNotConnected, ErrClosed, ErrTooBig, ErrCapturing,
		ErrNotCapturing, ErrBusy, ErrChanged, ErrMismatch, ErrNoSuchDoor,
		ErrNoSuchTransfer, ErrNoSuchName, ErrStopped,
	}
}
