package drill

import (
	"errors"
	"maps"
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// linuxStates are the numbers of tcpi_state.
var linuxStates = [...]float64{
	tcp.StateClosed: 7, tcp.StateListen: 10, tcp.StateSynSent: 2, tcp.StateSynReceived: 3,
	tcp.StateEstablished: 1, tcp.StateFinWait1: 4, tcp.StateFinWait2: 5, tcp.StateCloseWait: 8,
	tcp.StateClosing: 11, tcp.StateLastAck: 9, tcp.StateTimeWait: 6,
}

// constants are the names that a condition may use besides tcp_info's.
var constants = map[string]float64{
	"TCP_ESTABLISHED": 1, "TCP_SYN_SENT": 2, "TCP_SYN_RECV": 3, "TCP_FIN_WAIT1": 4,
	"TCP_FIN_WAIT2": 5, "TCP_TIME_WAIT": 6, "TCP_CLOSE": 7, "TCP_CLOSE_WAIT": 8,
	"TCP_LAST_ACK": 9, "TCP_LISTEN": 10, "TCP_CLOSING": 11,
	"TCP_CA_Open": 0, "TCP_CA_Disorder": 1, "TCP_CA_CWR": 2, "TCP_CA_Recovery": 3,
	"TCP_CA_Loss":         4,
	"TCPI_OPT_TIMESTAMPS": 1, "TCPI_OPT_SACK": 2, "TCPI_OPT_WSCALE": 4, "TCPI_OPT_ECN": 8,
	"TCP_INFINITE_SSTHRESH": 0x7fffffff, "True": 1, "False": 0,
}

// names returns tcp_info of the current connection in Linux's units: packets and microseconds.
func (w *world) names() (map[string]float64, error) {
	if w.info == nil {
		return nil, errors.New("no connection for tcp_info")
	}
	i := w.info.Info()
	us := func(d time.Duration) float64 { return float64(d.Microseconds()) }
	ms := func(d time.Duration) float64 { return float64(d.Milliseconds()) }
	mss := max(i.SndMSS, 1)
	n := map[string]float64{
		"tcpi_state":          linuxStates[i.State],
		"tcpi_ca_state":       caState(&i),
		"tcpi_retransmits":    float64(i.Retransmits),
		"tcpi_snd_wscale":     float64(max(0, i.SndWScale)),
		"tcpi_rcv_wscale":     float64(max(0, i.RcvWScale)),
		"tcpi_rto":            us(i.RTO),
		"tcpi_rtt":            us(i.RTT),
		"tcpi_rttvar":         us(i.RTTVar),
		"tcpi_min_rtt":        us(i.MinRTT),
		"tcpi_snd_mss":        float64(i.SndMSS),
		"tcpi_rcv_mss":        float64(i.RcvMSS),
		"tcpi_pmtu":           float64(i.PMTU),
		"tcpi_unacked":        float64(i.Unacked),
		"tcpi_sacked":         float64(i.Sacked),
		"tcpi_lost":           float64(i.Lost),
		"tcpi_snd_cwnd":       float64(i.SndCwnd / mss),
		"tcpi_snd_ssthresh":   w.ssthresh(i.SndSsthresh, mss),
		"tcpi_total_retrans":  float64(i.TotalRetrans),
		"tcpi_total_rto":      float64(i.TotalRTO),
		"tcpi_probes":         float64(i.Probes),
		"tcpi_notsent_bytes":  float64(i.NotSentBytes),
		"tcpi_bytes_sent":     float64(i.BytesSent),
		"tcpi_bytes_acked":    float64(i.BytesAcked),
		"tcpi_bytes_retrans":  float64(i.BytesRetrans),
		"tcpi_bytes_received": float64(i.BytesReceived),
		"tcpi_segs_out":       float64(i.SegsOut),
		"tcpi_segs_in":        float64(i.SegsIn),
		"tcpi_data_segs_out":  float64(i.DataSegsOut),
		"tcpi_data_segs_in":   float64(i.DataSegsIn),
		"tcpi_delivered":      float64(i.Delivered),
		"tcpi_dsack_dups":     float64(i.DSACKDups),
		"tcpi_reord_seen":     float64(i.ReordSeen),
		"tcpi_snd_wnd":        float64(i.SndWnd),
		"tcpi_rcv_wnd":        float64(i.RcvWnd),
		"tcpi_delivery_rate":  float64(i.DeliveryRate) / 8,
		"tcpi_pacing_rate":    float64(i.PacingRate) / 8,
		"tcpi_last_data_sent": ms(i.LastDataSent),
		"tcpi_last_data_recv": ms(i.LastDataRecv),
		"tcpi_last_ack_recv":  ms(i.LastAckRecv),
		"tcpi_options":        negotiated(&i),

		"tcpi_backoff":              float64(i.Backoff),
		"tcpi_ato":                  us(i.ATO),
		"tcpi_advmss":               float64(i.AdvMSS),
		"tcpi_retrans":              float64(i.Retrans),
		"tcpi_rcv_rtt":              us(i.RcvRTT),
		"tcpi_rcv_space":            float64(i.RcvSpace),
		"tcpi_rcv_ssthresh":         float64(i.RcvBuf),
		"tcpi_rcv_ooopack":          float64(i.RcvOOOPack),
		"tcpi_busy_time":            us(i.BusyTime),
		"tcpi_rwnd_limited":         us(i.RwndLimited),
		"tcpi_sndbuf_limited":       us(i.SndbufLimited),
		"tcpi_delivered_ce":         float64(i.ECNEchoes),
		"tcpi_total_rto_recoveries": float64(i.TotalRTORecoveries),
		"tcpi_total_rto_time":       ms(i.TotalRTOTime),

		"tcpi_delivery_rate_app_limited": flag(i.DeliveryRateAppLimited),
	}
	maps.Copy(n, constants)
	return n, nil
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// ssthresh returns ssthresh in packets. A value that no window can reach is infinite.
func (w *world) ssthresh(bytes, mss int) float64 {
	if bytes == 0 || bytes >= w.info.Tx().Limit() {
		return constants["TCP_INFINITE_SSTHRESH"]
	}
	return float64(bytes / mss)
}

// caState translates the state of loss recovery. Linux has the state Disorder for data that is
// sacked while none is considered lost.
func caState(i *tcp.Info) float64 {
	switch i.CAState {
	case "recovery":
		return 3
	case "loss":
		return 4
	}
	if i.Sacked > 0 {
		return 1
	}
	return 0
}

func negotiated(i *tcp.Info) float64 {
	n := 0.0
	if i.Timestamps {
		n++
	}
	if i.SACK {
		n += 2
	}
	if i.SndWScale >= 0 {
		n += 4
	}
	if i.ECN {
		n += 8
	}
	return n
}
