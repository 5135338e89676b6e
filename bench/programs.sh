#!/bin/bash
# Compares the ways to run a program inside a network, as an ordinary user: throughput by iperf3, the
# round-trip time of one byte over TCP, and requests a second of ab -k -c 16 to nginx, at MTU 1500, to
# a server outside. The ways take turns in each round; the table has the medians. Two of them have no
# network: "relays" is the time of a datagram through three processes that only pass it on, like two
# hosts and a router between them, and "socat" relays connections.
#
# "in" is a host of a network in one process, as `node in` starts it, and "processes" one of a network
# with a process for each node. "splice" is a node with a TUN device that splices an address to the servers,
# and "veth" the kernel alone: two network namespaces with a pair of virtual Ethernet devices. WAYS="direct
# in" measures only these.
#
#   go build -o bin/node ./cmd/node && bench/programs.sh [ROUNDS] [SECONDS]
#
# It needs iperf3 and python3, and uses nginx with ab, socat, slirp4netns and pasta if they are installed. pasta
# does not work as root.
set -u
rounds=${1:-5} seconds=${2:-3}
node=${NODE:-$(cd "$(dirname "$0")/.." && pwd)/bin/node}
for tool in iperf3 python3 "$node"; do
	command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 1; }
done
dir=$(mktemp -d) && cd "$dir" || exit 1
servers=()
end() {
	for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null; done
	"$node" net down --all --state "$dir/state" >/dev/null 2>&1
	rm -rf "$dir"
}
trap end EXIT
trap 'exit 1' INT TERM

cat >echo.py <<'PY'
import socket, statistics, sys, time
host, port = sys.argv[2], int(sys.argv[3])
if sys.argv[1] in ("relay", "end"):  # passes datagrams between PORT-1 and PORT+1, or returns them
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((host, port))
    while True:
        b, (_, at) = s.recvfrom(100)
        s.sendto(b, (host, 2 * port - at if sys.argv[1] == "relay" else at))
if sys.argv[1] == "serve":
    server = socket.create_server((host, port))
    while True:
        c, _ = server.accept()
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while b := c.recv(1):
            c.send(b)
        c.close()
if sys.argv[1] == "through":
    c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    c.settimeout(10)
    c.bind((host, port))
    c.connect((host, port + 1))
else:
    c = socket.create_connection((host, port), 10)
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
times = []
for i in range(2000):
    start = time.perf_counter()
    c.send(b"x")
    c.recv(1)
    times.append(time.perf_counter() - start)
print(round(statistics.median(times) * 1e6, 1))
PY
iperf=5297 echoes=5298 http=5299 relays=5300
command -v nginx >/dev/null && command -v ab >/dev/null || http=
cat >measure.sh <<SH
#!/bin/bash
# HOST [OFFSET]: prints Gbit/s, microseconds and requests a second
rate=\$(timeout $((seconds + 10)) iperf3 -c "\$1" -p \$(($iperf + \${2:-0})) -t $seconds -J |
	python3 -c 'import json,sys; print(round(json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"]/1e9, 3))')
rtt=\$(timeout 30 python3 $dir/echo.py ask "\$1" \$(($echoes + \${2:-0})))
requests=-
[ -z "$http" ] || requests=\$(timeout 60 ab -q -k -c 16 -n 20000 \
	"http://\$1:\$(($http + \${2:-0}))/" 2>/dev/null |
	awk '/^Requests per/ { print \$4 }')
echo "result \$rate \$rtt \$requests"
SH
cat >nginx.conf <<CONF
user root; daemon off; pid $dir/pid-nginx; error_log $dir/errors; worker_processes 1;
events { }
http {
	access_log off; keepalive_requests 1000000;
	client_body_temp_path $dir/body; proxy_temp_path $dir/proxy; fastcgi_temp_path $dir/fastcgi;
	uwsgi_temp_path $dir/uwsgi; scgi_temp_path $dir/scgi;
	server { listen $http; location / { return 200 "hello"; } }
}
CONF
chmod 755 . measure.sh echo.py

"$node" net generate line 3 --port 5840 --out lossless >/dev/null || exit 1
for f in lossless/*.lnx; do
	sed -n 's/^interface \([^ ]*\) .*/link \1 mtu 1500/p' "$f" >more && cat more >>"$f"
done
"$node" net up lossless --state "$dir/state" >/dev/null 2>&1 || exit 1
mkdir one || exit 1 # the same network, in one process
for f in lossless/*.lnx; do
	sed 's/127\.0\.0\.1:584/127.0.0.1:585/g' "$f" >"one/${f##*/}"
done
"$node" net up one --one-process --state "$dir/state" >/dev/null 2>&1 || exit 1
unshare -rn sleep 100000 & holder=$! servers+=($!)
inside=("$node" in --state "$dir/state") veth=(nsenter -U -n --preserve-credentials -t $holder)
sleep 1
echo "interface tun0 10.8.0.1/24 tun:tide0 kernel 10.8.0.2" >T.lnx
"${veth[@]}" sh -c "ip link set lo up; exec '$node' run --daemon --socket $dir/T.sock T.lnx" >/dev/null 2>&1 & servers+=($!)
for at in "" veth lossless:B one:B; do # here, in a namespace, and as host B of each network
	case $at in
	"") prefix=() ;;
	veth) prefix=("${veth[@]}") ;;
	*) prefix=("${inside[@]}" "$at" --) ;;
	esac
	"${prefix[@]}" iperf3 -s -p $iperf >/dev/null 2>&1 & servers+=($!)
	"${prefix[@]}" python3 "$dir/echo.py" serve 0.0.0.0 $echoes >/dev/null 2>&1 & servers+=($!)
	[ -z "$http" ] && continue
	"${prefix[@]}" nginx -e "$dir/errors" -c "$dir/nginx.conf" >/dev/null 2>&1 & servers+=($!)
done
if command -v socat >/dev/null; then
	for port in $iperf $echoes $http; do
		socat TCP-LISTEN:$((port + 100)),fork,reuseaddr,nodelay TCP:127.0.0.1:$port,nodelay \
			>/dev/null 2>&1 & servers+=($!)
	done
fi
for i in 1 2 3 4; do
	[ $i = 4 ] && part=end || part=relay
	python3 "$dir/echo.py" $part 127.0.0.1 $((relays + i)) & servers+=($!)
done
sleep 3
"$node" ctl "$dir/T.sock" splice 10.8.0.1 >/dev/null

limit=(timeout -k 1 $((seconds + 30)))
way() { # NAME: measures one way
	case $1 in
	relays) echo "result - $("${limit[@]}" python3 echo.py through 127.0.0.1 $relays) -" ;;
	direct) "${limit[@]}" ./measure.sh 127.0.0.1 ;;
	socat) "${limit[@]}" ./measure.sh 127.0.0.1 100 ;;
	link) "${limit[@]}" "$node" link -- ./measure.sh 100.64.0.1 ;;
	in) "${limit[@]}" "${inside[@]}" one:A -- ./measure.sh b ;;
	splice) "${limit[@]}" "${veth[@]}" ./measure.sh 10.8.0.1 ;;
	veth)
		"${limit[@]}" "${veth[@]}" unshare -n sh -c "echo \$\$ >pid; until [ -e go ]; do sleep 0.05; done
ip addr add 10.99.0.2/24 dev v1; ip link set v1 up; exec ./measure.sh 10.99.0.1" &
		inner=$!
		until [ -s pid ]; do sleep 0.05; done
		"${veth[@]}" sh -c "ip link add v0 type veth peer name v1 netns $(cat pid)
ip addr add 10.99.0.1/24 dev v0; ip link set v0 up"
		: >go
		wait $inner
		;;
	processes) "${limit[@]}" "${inside[@]}" lossless:A -- ./measure.sh b ;;
	slirp4netns)
		"${limit[@]}" unshare -rn sh -c "echo \$\$ >pid; until [ -e go ]; do sleep 0.05; done
exec ./measure.sh 10.0.2.2" &
		inner=$!
		until [ -s pid ]; do sleep 0.05; done
		"${limit[@]}" slirp4netns --configure --mtu=1500 "$(cat pid)" tap0 >/dev/null 2>&1 &
		outer=$!
		sleep 1
		: >go
		wait $inner
		kill $outer
		;;
	pasta)
		"${limit[@]}" pasta --config-net -m 1500 -- ./measure.sh \
			"$(ip route show default | awk '{print $3; exit}')" </dev/null
		;;
	esac >out 2>>errors
	sed -n "s/^result/$1/p" out >>results
	rm -f pid go
}
if [ -n "${WAYS:-}" ]; then
	read -ra ways <<<"$WAYS"
else
	ways=(direct veth link in splice processes relays)
	for tool in socat slirp4netns pasta; do command -v $tool >/dev/null && ways+=($tool); done
fi
for ((i = 0; i < rounds; i++)); do
	for w in "${ways[@]}"; do way "$w"; done
done
python3 - "$dir/results" <<'PY'
import statistics, sys
names, seen = [], {}
for line in open(sys.argv[1]):
    name, *values = line.split()
    if len(values) == 3:
        names += [name] * (name not in names)
        for i, v in enumerate(values):
            if v != "-":
                seen.setdefault((name, i), []).append(float(v))
median = {key: statistics.median(values) for key, values in seen.items()}
def column(name, i, width, digits, of=lambda value, direct: value):
    if (name, i) not in median or ("direct", i) not in median:
        return " " * width
    return f"{of(median[name, i], median['direct', i]):{width}.{digits}f}"
def share(value, direct):
    return value / direct
def added(value, direct):
    return value - direct
print(f"{'':12} rounds  Gbit/s of direct  RTT us added us  requests/s of direct")
for name in names:
    print(f"{name:12} {len(seen[name, 1]):6} {column(name, 0, 7, 2)} {column(name, 0, 9, 2, share)}"
          f" {column(name, 1, 7, 0)} {column(name, 1, 8, 0, added)}"
          f" {column(name, 2, 11, 0)} {column(name, 2, 9, 2, share)}")
PY
