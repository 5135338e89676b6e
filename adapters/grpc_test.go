// Package adapters runs protocol libraries of other projects, unchanged, over this library. It is a
// separate module, so tidepool does not depend on them.
package adapters

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/tidepool-net/tidepool"
)

// The interoperability cases of gRPC that need neither TLS nor a cloud
// (github.com/grpc/grpc/blob/master/doc/interop-test-descriptions.md), at 0, 1 and 5 % loss.
var grpcCases = []struct {
	name string
	run  func(ctx context.Context, cc *grpc.ClientConn)
}{
	{"empty_unary", with(interop.DoEmptyUnaryCall)},
	{"large_unary", with(interop.DoLargeUnaryCall)},
	{"client_streaming", with(interop.DoClientStreaming)},
	{"server_streaming", with(interop.DoServerStreaming)},
	{"ping_pong", with(interop.DoPingPong)},
	{"empty_stream", with(interop.DoEmptyStream)},
	{"timeout_on_sleeping_server", with(interop.DoTimeoutOnSleepingServer)},
	{"cancel_after_begin", with(interop.DoCancelAfterBegin)},
	{"cancel_after_first_response", with(interop.DoCancelAfterFirstResponse)},
	{"custom_metadata", with(interop.DoCustomMetadata)},
	{"status_code_and_message", with(interop.DoStatusCodeAndMessage)},
	{"special_status_message", with(interop.DoSpecialStatusMessage)},
	{"unimplemented_service", func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(cc))
	}},
	{"unimplemented_method", interop.DoUnimplementedMethod},
}

func with(
	run func(context.Context, testgrpc.TestServiceClient, ...grpc.CallOption),
) func(context.Context, *grpc.ClientConn) {
	return func(ctx context.Context, cc *grpc.ClientConn) { run(ctx, testgrpc.NewTestServiceClient(cc)) }
}

// failures makes a failed case end its test instead of the process.
type failures struct {
	grpclog.LoggerV2
	t *testing.T
}

func (f failures) Fatal(args ...any)                 { f.t.Fatal(args...) }
func (f failures) Fatalln(args ...any)               { f.t.Fatal(args...) }
func (f failures) Fatalf(format string, args ...any) { f.t.Fatalf(format, args...) }

func TestGRPC(t *testing.T) {
	for _, address := range []string{"10.0.0.2:50051", "[2001:db8::2]:50051"} {
		for _, loss := range []float64{0, 0.01, 0.05} {
			t.Run(fmt.Sprintf("%s, %g %% loss", address, 100*loss), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cc := grpcPair(t, address, tidepool.Impairments{
						Delay: 10 * time.Millisecond, Loss: loss, Seed: 1,
					})
					began := time.Now()
					for _, c := range grpcCases {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						c.run(ctx, cc)
						cancel()
					}
					assert.Greater(t, time.Since(began), 20*20*time.Millisecond, "20 round trips")
					t.Logf("%d cases in %v of virtual time", len(grpcCases), time.Since(began))
				})
			})
		}
	}
}

// grpcPair starts gRPC's test server on one of two hosts and connects to it from the other.
func grpcPair(t *testing.T, address string, link tidepool.Impairments) *grpc.ClientConn {
	t.Helper()
	grpclog.SetLoggerV2(failures{grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard), t})
	client, server, err := tidepool.OpenPair(link)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
	})
	l, err := server.Listen("tcp", address)
	require.NoError(t, err)
	s := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(s, interop.NewTestServer())
	go func() { assert.NoError(t, s.Serve(l)) }()
	t.Cleanup(s.Stop)
	cc, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			return client.DialContext(ctx, "tcp", to)
		}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cc.Close()) })
	return cc
}
