package tidepool_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/tidepool-net/tidepool"
)

// Many objects in one flow of UDP, by a router that loses a hundredth: the small one does not
// wait for the large one.
func ExampleNode_FetchRDT() {
	server, router, client := threeNodes()
	defer server.Close()
	defer router.Close()
	defer client.Close()

	s, err := server.ServeRDT(netip.MustParseAddrPort("0.0.0.0:9000"),
		tidepool.RDT{Interleave: true},
		tidepool.RDTObject{Name: "large", Data: []byte(strings.Repeat("tide", 100_000))},
		tidepool.RDTObject{Name: "small", Data: []byte("pool")},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	at := netip.MustParseAddrPort("10.0.1.2:9000")
	_, err = client.FetchRDT(context.Background(), at, tidepool.RDT{},
		func(r tidepool.RDTResult) error {
			fmt.Println(r.Name, len(r.Data), r.Err)
			return nil
		})
	fmt.Println(err)
	// Output:
	// small 4 <nil>
	// large 400000 <nil>
	// <nil>
}
