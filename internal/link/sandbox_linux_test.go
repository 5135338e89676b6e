package link

import (
	"net/netip"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// refused runs do on a thread. The kernel refuses system calls with this number on that thread, as
// in a sandbox. The thread ends after the call.
func refused(t *testing.T, number uint32, do func()) {
	t.Helper()
	// loads the number, which is at offset 0 of struct seccomp_data
	const loadNumber = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	filter := []unix.SockFilter{
		{Code: loadNumber},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: number},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
				uintptr(unsafe.Pointer(&program)), 0, 0)
		}
		if err == nil {
			do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Skip("skip: needs seccomp:", err)
	}
}

// If the kernel refuses a batch call, a device in automatic mode works without it. A device that
// requires the call returns an error.
func TestSandboxWithoutBatchCalls(t *testing.T) {
	for name, number := range map[string]uint32{
		"sendmmsg": unix.SYS_SENDMMSG, "recvmmsg": unix.SYS_RECVMMSG,
	} {
		t.Run(name, func(t *testing.T) {
			bind := netip.MustParseAddrPort("127.0.0.1:0")
			refused(t, number, func() {
				s, _, err := openSocket(Config{}.withDefaults(), bind)
				if assert.NoError(t, err) {
					assert.Equal(t, OffloadPlain, s.info().Offload)
					assert.NoError(t, s.close())
				}
				for _, asked := range []Offload{OffloadMMsg, OffloadGSO} {
					_, _, err = openSocket(Config{Offload: asked}.withDefaults(), bind)
					assert.ErrorIs(t, err, unix.ENOSYS)
					assert.ErrorContains(t, err, "no "+name)
				}
			})
		})
	}
	s, _, err := openSocket(Config{}.withDefaults(), netip.MustParseAddrPort("127.0.0.1:0"))
	require.NoError(t, err)
	defer s.close()
	assert.NotEqual(t, OffloadPlain, s.info().Offload)
}
