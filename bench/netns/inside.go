//go:build linux

package netns

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// offloads are the ioctls that switch an interface's offloads, by name.
var offloads = []struct {
	name string
	set  uint32
}{
	{"tso", unix.ETHTOOL_STSO},
	{"gso", unix.ETHTOOL_SGSO},
	{"gro", unix.ETHTOOL_SGRO},
	{"tx", unix.ETHTOOL_STXCSUM},
}

// request is the kernel's struct ifreq for ethtool calls, and value its struct ethtool_value.
type request struct {
	name  [unix.IFNAMSIZ]byte
	value *value
	_     [16]byte
}

type value struct{ command, data uint32 }

// Bare disables an interface's offloads in the namespace of this process.
func Bare(device string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, o := range offloads {
		r := request{value: &value{o.set, 0}}
		copy(r.name[:unix.IFNAMSIZ-1], device)
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL,
			uintptr(unsafe.Pointer(&r)))
		if e != 0 {
			return fmt.Errorf("%s of %s: %w", o.name, device, e)
		}
	}
	return nil
}

// drawRange is the upper limit of the random numbers that decide about drops.
const drawRange = 1_000_000

// Lose drops the given share of the packets that the kernel forwards in this namespace, each
// independently.
func Lose(share float64) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	table := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: "loss"}
	c.AddTable(table) // creates the table if it is missing, so that deleting it succeeds
	c.DelTable(table)
	if share > 0 {
		c.AddTable(table)
		chain := c.AddChain(&nftables.Chain{
			Name: "forward", Table: table, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter,
		})
		limit := binary.BigEndian.AppendUint32(nil, uint32(share*drawRange))
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
			&expr.Numgen{Register: 1, Modulus: drawRange, Type: unix.NFT_NG_RANDOM},
			&expr.Byteorder{
				SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: 4, Size: 4,
			},
			&expr.Cmp{Op: expr.CmpOpLt, Register: 1, Data: limit},
			&expr.Verdict{Kind: expr.VerdictDrop},
		}})
	}
	return c.Flush()
}
