// The measuring of the project against its peers. They are big, so they live in a module of their
// own, and the product's go.mod does not know them.
module github.com/tidepool-net/tidepool/bench

go 1.26.3

require (
	github.com/google/nftables v0.3.0
	github.com/stretchr/testify v1.12.1
	github.com/tidepool-net/tidepool v0.0.0
	golang.org/x/sys v0.49.0
	gvisor.dev/gvisor v0.0.0-20260905035102-160fafc42237
)

require (
	github.com/google/btree v1.1.2 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/gopacket/gopacket v1.7.5 // indirect
	github.com/mdlayher/netlink v1.7.3-0.20250113171957-fbb4dce95f42 // indirect
	github.com/mdlayher/socket v0.5.1 // indirect
	github.com/oleiade/lane/v2 v2.0.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/exp v0.0.0-20250711185948-6ae5c78190dc // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)

replace github.com/tidepool-net/tidepool => ../
