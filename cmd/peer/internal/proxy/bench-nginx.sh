#!/usr/bin/env bash
# Hits of peer against hits of nginx's proxy_cache, by wrk, side by side in one run, on one CPU and on all.
#
#   cmd/peer/internal/proxy/bench-nginx.sh [SECONDS a round, default 5] [ROUNDS, default 3]
#
# Installs nginx and wrk where apt-get can. Prints requests a second of each round and the ratio of the medians, and the CPU time
# that each server took for a request, which other work on the machine disturbs less.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
seconds=${1:-5} rounds=${2:-3}

for tool in nginx wrk; do
  command -v $tool >/dev/null || { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq nginx wrk >/dev/null; }
done
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work/www" "$work/cache"
chmod 777 "$work/cache"
head -c 1024 /dev/urandom > "$work/www/1k"
head -c 65536 /dev/urandom > "$work/www/64k"

# nginx_conf WORKERS: an origin on 18080 and a cache of it on 18081.
nginx_conf() {
  cat > "$work/nginx.conf" <<CONF
worker_processes $1; pid $work/nginx.pid; error_log $work/error.log; daemon off;
events { worker_connections 1024; }
http {
  access_log off; sendfile on; tcp_nopush off; keepalive_requests 100000000;
  proxy_cache_path $work/cache keys_zone=c:10m;
  server { listen 127.0.0.1:18080; root $work/www; add_header Cache-Control max-age=3600; }
  server { listen 127.0.0.1:18081; location / { proxy_pass http://127.0.0.1:18080; proxy_cache c; proxy_http_version 1.1; proxy_set_header Connection ""; } }
}
CONF
}
# ticks PID: CPU time of a process and its children so far, in clock ticks.
ticks() { cat "/proc/$1/stat" $(pgrep -P "$1" | sed 's|.*|/proc/&/stat|') | awk '{t += $14 + $15} END {print t}'; }
rate() { wrk -t1 -c32 -d"${seconds}s" "http://127.0.0.1:$1/$2" | awk '/Requests\/sec/ {print $2}'; }
median() { printf '%s\n' "$@" | sort -g | sed -n "$((($# + 1) / 2))p"; }

go build -o "$work/peer" ./cmd/peer
for cpus in 1 $(nproc); do
  pin=(); [ "$cpus" = 1 ] && pin=(taskset -c 0)
  nginx_conf "$cpus"
  "${pin[@]}" nginx -c "$work/nginx.conf" -p "$work" & pids=($!)
  GOMAXPROCS=$cpus "${pin[@]}" "$work/peer" run --name bench --listen 127.0.0.1:18082 --admin 127.0.0.1:18083 --gossip 127.0.0.1:18084 \
    --origin http://127.0.0.1:18080 --store "$work/store-$cpus" --store-size 1GiB >"$work/peer.log" 2>&1 & pids+=($!)
  for port in 18081 18082; do
    for i in $(seq 50); do curl -sf -o /dev/null "http://127.0.0.1:$port/1k" && break; sleep 0.1; done
    curl -sf -o /dev/null "http://127.0.0.1:$port/64k" || { cat "$work/peer.log" "$work/error.log"; exit 1; }
  done
  for size in 1k 64k; do
    n=() p=() nt=0 pt=0
    for _ in $(seq "$rounds"); do
      t=$(ticks "${pids[0]}"); n+=("$(rate 18081 $size)"); nt=$((nt + $(ticks "${pids[0]}") - t))
      t=$(ticks "${pids[1]}"); p+=("$(rate 18082 $size)"); pt=$((pt + $(ticks "${pids[1]}") - t))
    done
    awk -v c="$cpus" -v s=$size -v n="$(median "${n[@]}")" -v p="$(median "${p[@]}")" -v ns="${n[*]}" -v ps="${p[*]}" \
      -v nt="$nt" -v pt="$pt" -v hz="$(getconf CLK_TCK)" -v sec="$seconds" '
      function per(t, rates,   a, i, sum) { for (i = split(rates, a, " "); i > 0; i--) sum += a[i] * sec; return t / hz * 1e6 / sum }
      BEGIN { printf "%s CPU, %s: nginx %s/s (%s), peer %s/s (%s), peer/nginx %.2f; CPU a request: nginx %.1f us, peer %.1f us, %.2f\n",
                     c, s, n, ns, p, ps, p/n, per(nt, ns), per(pt, ps), per(nt, ns) / per(pt, ps) }'
  done
  kill "${pids[@]}"; wait "${pids[@]}" 2>/dev/null || true
  pids=()
done
