#!/usr/bin/env bash
# Hits of peer against hits of nginx's proxy_cache, by wrk, side by side in one run.
#
#   cmd/peer/internal/proxy/bench-nginx.sh [-t SECONDS] [-r ROUNDS] [-c "CPUS..."] [-s "SIZES..."] [-m "MODES..."] [-p PROFILE]
#
#   -t  length of a round, default 5          -r  rounds of each server, by turns, default 3; the medians count
#   -c  CPUs the server has, default "1 2"    -s  bodies, default "1k 64k"
#   -m  how clients ask, default "plain": plain, log (with an access log), tls (HTTP/1.1), h2c (HTTP/2 in the clear, by h2load)
#   -p  write a CPU profile of peer's last plain round to this file
#
# Installs nginx, wrk and h2load where apt-get can. Prints a table in Markdown: requests a second, their ratio, and the CPU time that each
# server took for a request, which other work on the machine disturbs less. The modes take turns in each round. PEER names a binary to measure, default: what is built here.
set -euo pipefail
seconds=5 rounds=3 cpu_list="1 2" sizes="1k 64k" modes=plain profile=
while getopts t:r:c:s:m:p: o; do
  case $o in
  t) seconds=$OPTARG ;; r) rounds=$OPTARG ;; c) cpu_list=$OPTARG ;; s) sizes=$OPTARG ;; m) modes=$OPTARG ;; p) profile=$(realpath -m "$OPTARG") ;;
  *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
cd "$(dirname "$0")/../../../.."

for tool in nginx wrk curl openssl h2load; do
  command -v $tool >/dev/null || { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq nginx wrk curl openssl nghttp2-client >/dev/null; break; }
done
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work/www" "$work/cache"
chmod 777 "$work/cache"
for size in $sizes; do head -c "${size^^}" /dev/urandom > "$work/www/$size"; done

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
  -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null

# nginx_conf WORKERS: an origin on 18080 and a cache of it on 18081, with a log on 18181, by TLS on 18281, by HTTP/2 on 18381.
nginx_conf() {
  cat > "$work/nginx.conf" <<CONF
worker_processes $1; pid $work/nginx.pid; error_log $work/error.log; daemon off;
events { worker_connections 1024; }
http {
  access_log off; sendfile on; tcp_nopush off; keepalive_requests 100000000;
  proxy_cache_path $work/cache keys_zone=c:10m;
  server { listen 127.0.0.1:18080; root $work/www; add_header Cache-Control max-age=3600; }
  ssl_certificate $work/cert.pem; ssl_certificate_key $work/key.pem;
  proxy_cache c; proxy_cache_key \$request_uri; proxy_http_version 1.1; proxy_set_header Connection "";
  server { listen 127.0.0.1:18081; listen 127.0.0.1:18281 ssl; location / { proxy_pass http://127.0.0.1:18080; } }
  server { listen 127.0.0.1:18181; access_log $work/nginx-access.log; location / { proxy_pass http://127.0.0.1:18080; } }
  server { listen 127.0.0.1:18381 http2; location / { proxy_pass http://127.0.0.1:18080; } }
}
CONF
}
# ticks PID: CPU time of a process and its children so far, in clock ticks.
ticks() { cat "/proc/$1/stat" $(pgrep -P "$1" | sed 's|.*|/proc/&/stat|') | awk '{t += $14 + $15} END {print t}'; }
# start_peer NUMBER OPTION...: one at port 18082 + 10 * NUMBER.
start_peer() {
  local port=$((18082 + 10 * $1))
  GOMAXPROCS=$cpus "${pin[@]}" "$PEER" run --name "bench$1" --listen 127.0.0.1:$port --admin 127.0.0.1:$((port + 1)) --gossip 127.0.0.1:$((port + 2)) --profiles on \
    --origin http://127.0.0.1:18080 --store "$work/store-$cpus-$1" --store-size 1GiB "${@:2}" >"$work/peer$1.log" 2>&1 & pids+=($!)
}
rate() { # PORT PATH MODE
  case $3 in
  h2c) h2load -t1 -c32 -m1 -D"$seconds" "http://127.0.0.1:$1/$2" | awk '/^finished in/ {print $4}' ;;
  tls) rate_by_wrk "https://localhost:$1/$2" ;;
  *) rate_by_wrk "http://127.0.0.1:$1/$2" ;;
  esac
}
rate_by_wrk() { wrk -t1 -c32 -d"${seconds}s" "$1" | awk '/Requests\/sec/ {print $2} /Non-2xx|Socket errors/ {print > "/dev/stderr"}'; }
median() { printf '%s\n' "$@" | sort -g | sed -n "$((($# + 1) / 2))p"; }

[ -n "${PEER:-}" ] || { go build -o "$work/peer" ./cmd/peer; PEER=$work/peer; }
echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs; $(nginx -v 2>&1 | sed 's/.*: //'); $("$PEER" version | grep -o 'go1[^ ,)]*' | head -n 1); wrk -t1 -c32, $rounds rounds of $seconds s each"
echo
echo "| CPUs | body | mode | nginx/s | peer/s | peer/nginx | nginx CPU µs | peer CPU µs | nginx/peer CPU | peer/plain CPU |"
echo "|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|"
declare -A nginx_port=([plain]=18081 [log]=18181 [tls]=18281 [h2c]=18381) peer_port=([plain]=18082 [log]=18092 [tls]=18282 [h2c]=18082) peer_pid=([plain]=1 [log]=2 [tls]=1 [h2c]=1)
for cpus in $cpu_list; do
  pin=(); [ "$cpus" = 1 ] && pin=(taskset -c 0)
  nginx_conf "$cpus"
  "${pin[@]}" nginx -c "$work/nginx.conf" -p "$work" & pids=($!)
  start_peer 0 --https 127.0.0.1:18282 --https-cert "$work/cert.pem" --https-key "$work/key.pem"
  start_peer 1 --access-log "$work/peer-access.log"
  for size in $sizes; do
    declare -A n=() p=() nt=() pt=()
    for mode in $modes; do
      scheme=http; [ "$mode" = tls ] && scheme=https
      for port in ${nginx_port[$mode]} ${peer_port[$mode]}; do
        get=(curl -skf -o /dev/null "$scheme://localhost:$port/$size"); [ "$mode" = h2c ] && get+=(--http2-prior-knowledge)
        for i in $(seq 50); do "${get[@]}" && break; sleep 0.1; done
        "${get[@]}" || { cat "$work"/peer*.log "$work/error.log" >&2; exit 1; }
      done
    done
    for round in $(seq "$rounds"); do
      for mode in $modes; do
        who=${pids[${peer_pid[$mode]}]}
        t=$(ticks "${pids[0]}"); n[$mode]+=" $(rate "${nginx_port[$mode]}" "$size" "$mode")"; nt[$mode]=$((${nt[$mode]:-0} + $(ticks "${pids[0]}") - t))
        if [ -n "$profile" ] && [ "$round" = "$rounds" ] && [ "$mode" = plain ]; then
          curl -s -o "$profile" "http://127.0.0.1:18083/debug/pprof/profile?seconds=$seconds" & profiling=$!
        fi
        t=$(ticks "$who"); p[$mode]+=" $(rate "${peer_port[$mode]}" "$size" "$mode")"; pt[$mode]=$((${pt[$mode]:-0} + $(ticks "$who") - t))
        [ -z "${profiling:-}" ] || { wait "$profiling"; profiling=; }
      done
    done
    base=
    for mode in $modes; do
      line=$(awk -v c="$cpus" -v s="$size" -v m="$mode" -v n="$(median ${n[$mode]})" -v p="$(median ${p[$mode]})" -v ns="${n[$mode]}" -v ps="${p[$mode]}" \
        -v nt="${nt[$mode]}" -v pt="${pt[$mode]}" -v hz="$(getconf CLK_TCK)" -v sec="$seconds" -v base="$base" '
        function per(t, rates,   a, i, sum) { for (i = split(rates, a, " "); i > 0; i--) sum += a[i] * sec; return t / hz * 1e6 / sum }
        BEGIN { own = per(pt, ps); if (base == "") base = own
          printf "| %s | %s | %s | %.0f | %.0f | %.2f | %.1f | %.1f | %.2f | %.2f |\n", c, s, m, n, p, p/n, per(nt, ns), own, per(nt, ns) / own, own / base }')
      [ -n "$base" ] || base=$(awk -F'|' '{print $9 + 0}' <<<"$line")
      echo "$line"
    done
  done
  kill "${pids[@]}"; wait "${pids[@]}" 2>/dev/null || true
  pids=()
done
