#!/usr/bin/env bash
# Hits of peer against hits of nginx's proxy_cache, by wrk, side by side in one run.
#
#   cmd/peer/internal/proxy/bench-nginx.sh [-t SECONDS] [-r ROUNDS] [-c "CPUS..."] [-s "SIZES..."] [-p PROFILE]
#
#   -t  length of a round, default 5          -r  rounds of each server, by turns, default 3; the medians count
#   -c  CPUs the server has, default "1 2"    -s  bodies, default "1k 64k"
#   -p  write a CPU profile of peer's last round to this file
#
# Installs nginx and wrk where apt-get can. Prints a table in Markdown: requests a second, their ratio, and the CPU time that each
# server took for a request, which other work on the machine disturbs less. PEER names a binary to measure, default: what is built here.
set -euo pipefail
seconds=5 rounds=3 cpu_list="1 2" sizes="1k 64k" profile=
while getopts t:r:c:s:p: o; do
  case $o in
  t) seconds=$OPTARG ;; r) rounds=$OPTARG ;; c) cpu_list=$OPTARG ;; s) sizes=$OPTARG ;; p) profile=$(realpath -m "$OPTARG") ;;
  *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
cd "$(dirname "$0")/../../../.."

for tool in nginx wrk curl; do
  command -v $tool >/dev/null || { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq nginx wrk curl >/dev/null; break; }
done
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work/www" "$work/cache"
chmod 777 "$work/cache"
for size in $sizes; do head -c "${size^^}" /dev/urandom > "$work/www/$size"; done

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
rate() { wrk -t1 -c32 -d"${seconds}s" "http://127.0.0.1:$1/$2" | awk '/Requests\/sec/ {print $2} /Non-2xx|Socket errors/ {print > "/dev/stderr"}'; }
median() { printf '%s\n' "$@" | sort -g | sed -n "$((($# + 1) / 2))p"; }

[ -n "${PEER:-}" ] || { go build -o "$work/peer" ./cmd/peer; PEER=$work/peer; }
echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs; $(nginx -v 2>&1 | sed 's/.*: //'); $("$PEER" version | grep -o 'go1[^ ,)]*' | head -n 1); wrk -t1 -c32, $rounds rounds of $seconds s each"
echo
echo "| CPUs | body | nginx/s | peer/s | peer/nginx | nginx CPU µs | peer CPU µs | nginx/peer CPU |"
echo "|---:|---:|---:|---:|---:|---:|---:|---:|"
for cpus in $cpu_list; do
  pin=(); [ "$cpus" = 1 ] && pin=(taskset -c 0)
  nginx_conf "$cpus"
  "${pin[@]}" nginx -c "$work/nginx.conf" -p "$work" & pids=($!)
  GOMAXPROCS=$cpus "${pin[@]}" "$PEER" run --name bench --listen 127.0.0.1:18082 --admin 127.0.0.1:18083 --gossip 127.0.0.1:18084 --profiles on \
    --origin http://127.0.0.1:18080 --store "$work/store-$cpus" --store-size 1GiB >"$work/peer.log" 2>&1 & pids+=($!)
  for size in $sizes; do
    for port in 18081 18082; do
      for i in $(seq 50); do curl -sf -o /dev/null "http://127.0.0.1:$port/$size" && break; sleep 0.1; done
      curl -sf -o /dev/null "http://127.0.0.1:$port/$size" || { cat "$work/peer.log" "$work/error.log" >&2; exit 1; }
    done
    n=() p=() nt=0 pt=0
    for round in $(seq "$rounds"); do
      t=$(ticks "${pids[0]}"); n+=("$(rate 18081 "$size")"); nt=$((nt + $(ticks "${pids[0]}") - t))
      if [ -n "$profile" ] && [ "$round" = "$rounds" ]; then
        curl -s -o "$profile" "http://127.0.0.1:18083/debug/pprof/profile?seconds=$seconds" & profiling=$!
      fi
      t=$(ticks "${pids[1]}"); p+=("$(rate 18082 "$size")"); pt=$((pt + $(ticks "${pids[1]}") - t))
      [ -z "${profiling:-}" ] || wait "$profiling"
    done
    awk -v c="$cpus" -v s="$size" -v n="$(median "${n[@]}")" -v p="$(median "${p[@]}")" -v ns="${n[*]}" -v ps="${p[*]}" \
      -v nt="$nt" -v pt="$pt" -v hz="$(getconf CLK_TCK)" -v sec="$seconds" '
      function per(t, rates,   a, i, sum) { for (i = split(rates, a, " "); i > 0; i--) sum += a[i] * sec; return t / hz * 1e6 / sum }
      BEGIN { printf "| %s | %s | %.0f | %.0f | %.2f | %.1f | %.1f | %.2f |\n", c, s, n, p, p/n, per(nt, ns), per(pt, ps), per(nt, ns) / per(pt, ps) }'
  done
  kill "${pids[@]}"; wait "${pids[@]}" 2>/dev/null || true
  pids=()
done
