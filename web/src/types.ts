// The parts of the API's responses that the page reads: see /v1/openapi.json.

export interface ShapeEnd { node: string; iface: string; addr: string }
export interface ShapeLink { subnet: string; ends: ShapeEnd[] | null }
export interface Shape {
  name: string;
  nodes: { name: string; router: boolean }[];
  links: ShapeLink[];
}

export interface Drop { reason: string; packets: number }
export interface Counters {
  packets: number; bytes: number; errors: number; drops?: Drop[];
}
export interface Interface {
  index: number; name: string; addr: string; ipv6?: string[]; up: boolean; problem?: string; udp: string;
  mtu: number; loss_percent: number; in: Counters; out: Counters;
}
export interface Impairment {
  iface: string; way: "out" | "in"; words: string;
  seen: number; passed: number; passed_bytes: number; lost: number; queue_dropped: number; overflowed: number;
  corrupted: number; inside: number; waiting: number;
}
export interface Info {
  recovery: string; congestion: string; rto_ns: number; rtt_ns: number; rttvar_ns: number;
  min_rtt_ns: number; mss: number; cwnd: number; ssthresh: number; send_window: number;
  recv_window: number; pipe: number; bytes_sent: number; bytes_acked: number;
  bytes_retrans: number; bytes_received: number; delivery_rate: number; unacked: number;
  retransmits: number; timeouts: number; limited: string; ecn: boolean; sack: boolean;
}
export interface Socket {
  sid: number; local: string; remote: string; state: string; recv_q: number; send_q: number;
  info?: Info;
}
export interface Route {
  origin: string; prefix: string; next_hop: string; iface: string; cost: number; kind?: string;
}
export interface Neighbor { iface: string; addr: string; udp: string; state?: string }
export interface RIPRoute {
  prefix: string; cost: number; next_hop: string; from: string; iface: string;
  age_ns: number; left_ns: number; changed_ns: number;
}
export interface RIPInfo {
  dialect: string; next_update_ns: number; routes: RIPRoute[] | null;
  timers: { periodic_ns: number; timeout_ns: number };
  ripng?: RIPInfo;
}
export interface NATSession {
  protocol: string; inside: string; outside: string; remote: string; state: string;
  left: number; out: number; in: number;
}
export interface NAT {
  iface: string; outside: string; mapping: string; filtering: string; forwards: string[] | null;
  sessions: NATSession[] | null; total: number; max_sessions: number; refused: number; filtered: number;
}
export interface Transfer { bytes: number; seconds: number; mb_per_s: number; sha256: string;
  retransmits: number; path: string; sent: boolean; sid: number; peer: string }
export interface Progress { bytes: number; total: number; elapsed_ns: number }
export interface Reply { from: string; seq: number; ttl: number; rtt_ns: number;
  problem?: string; late?: boolean; size: number }
export interface PingResult { sent: number; received: number; min_ns: number; avg_ns: number;
  max_ns: number; mdev_ns: number }

export interface Sample {
  at: string; state: string; acked: number; sent: number; received: number; info: Info;
}
export interface Look { node: string; sid: number; sample?: Sample; over?: string }
export interface Segment {
  at: string; sent: boolean; flags: string; seq: number; ack: number; length: number;
  window: number; marks?: string[] | null; drop?: string; missed?: number;
  sack?: { begin: number; end: number }[] | null; wire_seq: number; tsval?: number;
}
