#!/bin/bash
# Compares the ways to run a program inside a network, as an ordinary user: throughput by iperf3 and
# the round-trip time of one byte over TCP, at MTU 1500, to a server outside. The ways take turns in
# each round; the table has the medians.
#
#   go build -o bin/node ./cmd/node && bench/programs.sh [ROUNDS] [SECONDS]
#
# It needs iperf3 and python3, and compares with slirp4netns and pasta if they are there.
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
if sys.argv[1] == "serve":
    server = socket.create_server((host, port))
    while True:
        c, _ = server.accept()
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while b := c.recv(1):
            c.send(b)
        c.close()
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
cat >measure.sh <<SH
#!/bin/bash
# HOST IPERF-PORT ECHO-PORT: prints Gbit/s and microseconds
rate=\$(timeout $((seconds + 10)) iperf3 -c "\$1" -p "\$2" -t $seconds -J |
	python3 -c 'import json,sys; print(round(json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"]/1e9, 3))')
echo "result \$rate \$(timeout 30 python3 $dir/echo.py ask "\$1" "\$3")"
SH
chmod 755 . measure.sh echo.py

iperf=5297 echoes=5298
"$node" net generate line 3 --port 5840 --out lossless >/dev/null || exit 1
for f in lossless/*.lnx; do
	sed -n 's/^interface \([^ ]*\) .*/link \1 mtu 1500/p' "$f" >more && cat more >>"$f"
done
"$node" net up lossless --state "$dir/state" >/dev/null 2>&1 || exit 1
inside=("$node" in --state "$dir/state")
for at in "" B; do # here, and as host B
	prefix=()
	[ -z "$at" ] || prefix=("${inside[@]}" lossless:B --)
	"${prefix[@]}" iperf3 -s -p $iperf >/dev/null 2>&1 & servers+=($!)
	"${prefix[@]}" python3 "$dir/echo.py" serve 0.0.0.0 $echoes >/dev/null 2>&1 & servers+=($!)
done
sleep 3

limit=(timeout -k 1 $((seconds + 30)))
way() { # NAME: measures one way
	case $1 in
	direct) "${limit[@]}" ./measure.sh 127.0.0.1 $iperf $echoes ;;
	link) "${limit[@]}" "$node" link -- ./measure.sh 100.64.0.1 $iperf $echoes ;;
	in)
		"${limit[@]}" "${inside[@]}" lossless:A -- ./measure.sh b $iperf $echoes
		;;
	slirp4netns)
		"${limit[@]}" unshare -rn sh -c "echo \$\$ >pid; until [ -e go ]; do sleep 0.05; done
exec ./measure.sh 10.0.2.2 $iperf $echoes" &
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
			"$(ip route show default | awk '{print $3; exit}')" $iperf $echoes </dev/null
		;;
	esac >out 2>>errors
	sed -n "s/^result/$1/p" out >>results
	rm -f pid go
}
ways=(direct link in)
for tool in slirp4netns pasta; do command -v $tool >/dev/null && ways+=($tool); done
for ((i = 0; i < rounds; i++)); do
	for w in "${ways[@]}"; do way "$w"; done
done
python3 - "$dir/results" <<'PY'
import statistics, sys
rates, times = {}, {}
for line in open(sys.argv[1]):
    name, *values = line.split()
    if len(values) == 2:
        rates.setdefault(name, []).append(float(values[0]))
        times.setdefault(name, []).append(float(values[1]))
print(f"{'':12} {'rounds':>6} {'Gbit/s':>7} {'of direct':>9} {'RTT us':>7} {'added us':>8}")
for name in rates:
    r, t = statistics.median(rates[name]), statistics.median(times[name])
    print(f"{name:12} {len(rates[name]):6} {r:7.2f} {r / statistics.median(rates['direct']):9.2f}"
          f" {t:7.0f} {t - statistics.median(times['direct']):8.0f}")
PY
