package drill

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// option takes one line --name=value.
func (s *settings) option(o option) error {
	number := func(low, high int) (int, error) {
		n, err := strconv.Atoi(o.value)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("want a number from %d to %d", low, high)
		}
		return n, nil
	}
	var n int
	var err error
	switch o.name {
	case "tolerance_usecs":
		n, err = number(0, 1e9)
		s.tolerance = time.Duration(n) * time.Microsecond
	case "tolerance_percent":
		s.percent, err = strconv.ParseFloat(o.value, 64)
	case "mtu":
		s.mtu, err = number(68, 65535)
	case "bind_port":
		n, err = number(1, 65535)
		s.bind = uint16(n)
	case "connect_port":
		n, err = number(1, 65535)
		s.connect = uint16(n)
	case "tcp_ts_tick_usecs":
		n, err = number(0, 1e6)
		s.tick = time.Duration(n) * time.Microsecond
	case "tcp_ts_ecr_scaled": // always on
	case "local_ip":
		s.local, err = address(o.value)
	case "remote_ip":
		s.remote, err = address(o.value)
	case "recovery":
		s.config.Recovery.Strategy = o.value
	case "pacing":
		s.config.Recovery.Pacing = true
	case "initial_window":
		s.config.Recovery.InitialWindow, err = number(1, 1000)
	case "ip_version":
		if o.value != "ipv4" {
			return errors.New("only ipv4")
		}
	default:
		return errors.New("unknown option")
	}
	return err
}

func address(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err == nil && !a.Is4() {
		err = errors.New("only IPv4")
	}
	return a, err
}

// command runs a command of the first `…` block: sysctl, ip, or a command that prepares the real
// machine and has no effect here.
func (s *settings) command(words []string) error {
	switch name := base(words[0]); name {
	case "sysctl":
		for _, w := range words[1:] {
			if strings.HasPrefix(w, "-") {
				continue
			}
			key, v, ok := strings.Cut(w, "=")
			if !ok {
				return fmt.Errorf("sysctl %s: want NAME=VALUE", w)
			}
			if err := s.sysctl(key, strings.Fields(v)); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		return nil
	case "ip":
		mtu, err := linkMTU(words)
		s.mtu = mtu
		return err
	case "defaults.sh", "set_sysctls.py", "ethtool", "tc":
		return nil
	default:
		return fmt.Errorf("unknown command %s", name)
	}
}

// command runs a command during the script.
func (w *world) command(words []string) error {
	switch base(words[0]) {
	case "ip":
		mtu, err := linkMTU(words)
		if err != nil {
			return err
		}
		w.path.MTU = mtu
		w.host.Rerouted()
		return nil
	case "sysctl":
		set := settings{}
		set.config.Knobs = w.host.Knobs()
		before := set.config
		if err := set.command(words); err != nil {
			return err
		}
		knobs := set.config.Knobs
		set.config.Knobs = before.Knobs
		if fmt.Sprint(set.config) != fmt.Sprint(before) {
			return fmt.Errorf("%v cannot change while the host runs", words[1:])
		}
		return w.host.SetKnobs(knobs)
	}
	return fmt.Errorf("unknown command %s among the events", words[0])
}

// base returns a command's name without its folder.
func base(command string) string { return command[strings.LastIndexByte(command, '/')+1:] }

// linkMTU reads ip link set dev tun0 mtu 1400.
func linkMTU(words []string) (int, error) {
	for i := range words {
		if words[i] == "mtu" && i+1 < len(words) && words[1] == "link" {
			n, err := strconv.Atoi(words[i+1])
			if err == nil && n >= 68 && n <= 65535 {
				return n, nil
			}
		}
	}
	return 0, errors.New("want ip link set dev tun0 mtu N")
}

// sysctl changes a setting by its Linux name.
func (s *settings) sysctl(key string, values []string) error {
	key = strings.ReplaceAll(key, "/", ".")
	if inertSysctls[key] {
		return nil
	}
	if key == "net.ipv4.tcp_congestion_control" && len(values) == 1 {
		s.config.Recovery.Congestion = values[0]
		return nil
	}
	set := sysctls[key]
	if set == nil {
		return errors.New("unknown setting")
	}
	var numbers []int
	for _, v := range values {
		n, err := strconv.Atoi(v)
		if err != nil || n < -1 || n > maxNumber {
			return fmt.Errorf("%q is not a number", v)
		}
		numbers = append(numbers, n)
	}
	if len(numbers) != 1 && (len(numbers) != 3 || !strings.HasSuffix(key, "mem")) {
		return fmt.Errorf("%d values", len(numbers))
	}
	return set(s, numbers)
}

// maxNumber bounds a setting: the largest buffer is 64 MiB.
const maxNumber = 1 << 26

// inertSysctls are settings of features that this TCP does not have.
var inertSysctls = map[string]bool{
	"net.ipv4.tcp_no_metrics_save": true, "net.ipv4.tcp_fastopen": true,
	"net.ipv4.tcp_limit_output_bytes": true, "net.ipv4.tcp_min_tso_segs": true,
	"net.ipv4.tcp_tso_win_divisor": true, "net.ipv4.tcp_autocorking": true,
	"net.ipv4.tcp_thin_linear_timeouts": true, "net.core.somaxconn": true,
	"net.ipv4.tcp_invalid_ratelimit": true, "net.ipv4.tcp_shrink_window": true,
}

var sysctls = map[string]func(*settings, []int) error{
	"net.ipv4.tcp_syncookies": func(s *settings, n []int) error {
		modes := []tcp.CookieMode{tcp.CookiesOff, tcp.CookiesAuto, tcp.CookiesAlways}
		if n[0] < 0 || n[0] >= len(modes) {
			return errors.New("want 0, 1 or 2")
		}
		s.config.SynCookies = modes[n[0]]
		return nil
	},
	"net.ipv4.tcp_max_syn_backlog": func(s *settings, n []int) error {
		s.config.Limits.SynBacklog = n[0]
		return nil
	},
	"net.ipv4.tcp_mtu_probing": func(s *settings, n []int) error {
		modes := []string{"off", "blackhole", "on"}
		if n[0] < 0 || n[0] >= len(modes) {
			return errors.New("want 0, 1 or 2")
		}
		s.config.MTUProbing = modes[n[0]]
		return nil
	},
	"net.ipv4.tcp_recovery": func(s *settings, n []int) error {
		s.config.Recovery.Strategy = "sack"
		if n[0]&1 != 0 {
			s.config.Recovery.Strategy = "rack"
		}
		return nil
	},
	"net.ipv4.tcp_sack": func(s *settings, n []int) error {
		s.config.NoSACK = n[0] == 0
		return nil
	},
	"net.ipv4.tcp_timestamps": func(s *settings, n []int) error {
		s.config.NoTimestamps = n[0] == 0
		return nil
	},
	"net.ipv4.tcp_window_scaling": func(s *settings, n []int) error {
		s.config.NoWindowScale = n[0] == 0
		return nil
	},
	"net.ipv4.tcp_ecn": func(s *settings, n []int) error {
		modes := []tcp.ECNMode{tcp.ECNOff, tcp.ECNOn, tcp.ECNPassive}
		if n[0] < 0 || n[0] >= len(modes) {
			return errors.New("want 0, 1 or 2")
		}
		s.config.ECN = modes[n[0]]
		return nil
	},
	"net.ipv4.tcp_rmem": func(s *settings, n []int) error {
		s.config.Buffers.Recv, s.config.Buffers.RecvMax = n[len(n)/2], n[len(n)-1]
		return nil
	},
	"net.ipv4.tcp_wmem": func(s *settings, n []int) error {
		s.config.Buffers.Send, s.config.Buffers.SendMax = n[len(n)/2], n[len(n)-1]
		return nil
	},
	"net.ipv4.tcp_fin_timeout": func(s *settings, n []int) error {
		s.config.FinWait2 = time.Duration(n[0]) * time.Second
		return nil
	},
	"net.ipv4.tcp_retries2": func(s *settings, n []int) error {
		s.config.Retries.Data = n[0]
		return nil
	},
	"net.ipv4.tcp_orphan_retries": func(s *settings, n []int) error {
		s.config.Retries.Fin = n[0]
		return nil
	},
	"net.ipv4.tcp_syn_retries":    synRetries,
	"net.ipv4.tcp_synack_retries": synRetries,
	"net.ipv4.tcp_keepalive_time": func(s *settings, n []int) error {
		s.keepalive.Idle = time.Duration(n[0]) * time.Second
		return nil
	},
	"net.ipv4.tcp_keepalive_intvl": func(s *settings, n []int) error {
		s.keepalive.Interval = time.Duration(n[0]) * time.Second
		return nil
	},
	"net.ipv4.tcp_keepalive_probes": func(s *settings, n []int) error {
		s.keepalive.Count = n[0]
		return nil
	},
	"net.ipv4.tcp_max_tw_buckets": func(s *settings, n []int) error {
		s.config.Limits.MaxTimeWait = n[0]
		return nil
	},
	"net.ipv4.tcp_challenge_ack_limit": func(s *settings, n []int) error {
		s.config.Limits.ChallengeAcks = n[0]
		return nil
	},
	"net.ipv4.tcp_rto_min_us": func(s *settings, n []int) error {
		s.config.Recovery.RTOMin = time.Duration(n[0]) * time.Microsecond
		return nil
	},
}

func synRetries(s *settings, n []int) error {
	s.config.Retries.Syn = n[0]
	return nil
}
