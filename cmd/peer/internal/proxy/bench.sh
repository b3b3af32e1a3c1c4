# What bench-nginx.sh and bench-quiet.sh share: the servers and what they take. It is sourced, with the settings that it names, by a script which has set
# package[TOOL]=PACKAGE, seconds, rounds, cpus, servers and where.
for tool in "${!package[@]}"; do
  command -v "$tool" >/dev/null || { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${package[@]}" >/dev/null; break; }
done
work=$(mktemp -d -p "$where")
trap 'stop_all; rm -rf "$work"' EXIT
chmod 755 "$work"
declare -A pid=()
stop_all() { [ ${#pid[@]} = 0 ] || kill "${pid[@]}" 2>/dev/null || true; wait 2>/dev/null || true; pid=(); }
server=() others=()
[ "$cpus" != 1 ] || { server=(taskset -c 0) others=(taskset -c "1-$(($(nproc) - 1))"); }
[ -n "${PEER:-}" ] || { go build -o "$work/peer" ./cmd/peer; PEER=$work/peer; }
has() { [[ " $servers " == *" $1 "* ]]; }
! has floor || go build -o "$work/floor" ./cmd/peer/internal/proxy/benchfloor
mkdir "$work/www"
for size in 1k 64k 1m; do head -c "${size^^}" /dev/urandom > "$work/www/$size"; done
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
  -keyout "$work/key.pem" -out "$work/cert.pem" 2>"$work/openssl.log" || { cat "$work/openssl.log" >&2; exit 1; }

# Requests are for /SIZE/NUMBER. Ports: 18080 the origin, 1808x the servers, 1809x those that are asked as siblings.
declare -A port=([nginx]=18081 [tuned]=18085 [varnish]=18082 [floor]=18083 [peer]=18084 [squid]=18086)
# start NAME COMMAND...: in the background, until it answers on its port.
start() {
  local name=$1 at=$2; shift 2
  "$@" >>"$work/$name.log" 2>&1 & pid[$name]=$!
  for _ in $(seq 300); do curl -sf -o /dev/null "http://127.0.0.1:$at/1k/up" && return; sleep 0.1; done
  cat "$work"/*.log >&2; exit 1
}
# run_nginx NAME PORT ORIGIN: an nginx of its own; ORIGIN "" = it is the origin.
run_nginx() {
  local cache="proxy_cache_path $dir/cache-$1 keys_zone=c:64m max_size=$([ "$what" = turnover ] && echo 256m || echo 16g) inactive=1h; proxy_cache c; proxy_cache_key \$request_uri; proxy_http_version 1.1; proxy_set_header Connection \"\";
    upstream up { server 127.0.0.1:$3; keepalive 256; keepalive_requests 100000000; } ssl_certificate $work/cert.pem; ssl_certificate_key $work/key.pem;
    server { listen 127.0.0.1:$2; listen 127.0.0.1:$(($2 + 200)) ssl; location / { proxy_pass http://up; } }
    server { listen 127.0.0.1:$(($2 + 100)); access_log $work/nginx-access.log; location / { proxy_pass http://up; } }
    server { listen 127.0.0.1:$(($2 + 300)) http2; location / { proxy_pass http://up; } }"
  [ -n "$3" ] || cache="server { listen 127.0.0.1:$2; root $work/www; add_header Cache-Control max-age=3600; location ~ ^/(1k|64k|1m)/ { try_files /\$1 =404; } }"
  [ "$1" != tuned ] || cache="open_file_cache max=200000 inactive=1h; open_file_cache_valid 1h; $cache"
  mkdir -p "$dir/cache-$1"; chmod 777 "$dir/cache-$1"
  echo "worker_processes $cpus; pid $work/$1.pid; error_log $work/$1-error.log; daemon off; events { worker_connections 4096; }
    http { access_log off; sendfile on; tcp_nopush off; keepalive_requests 100000000; $cache }" > "$work/$1.conf"
  start "$1" "$2" "${pin[@]}" nginx -c "$work/$1.conf" -p "$work"
}
# run_peer NAME PORT OPTION...
run_peer() {
  start "$1" "$2" env GOMAXPROCS="$cpus" "${pin[@]}" "$PEER" run --name "$1" --listen 127.0.0.1:$2 --admin 127.0.0.1:$(($2 + 1000)) --gossip 127.0.0.1:$(($2 + 2000)) --profiles on \
    --origin http://127.0.0.1:18080 --store "$dir/store-$1" --store-size "$([ "$what" = turnover ] && echo 256MiB || echo 16GiB)" "${@:3}"
}
# run_squid NAME PORT ORIGIN SIBLING: a Squid that asks another one, which listens on port SIBLING, by ICP; "" = none.
run_squid() {
  local sibling=
  [ -z "$4" ] || sibling="cache_peer 127.0.0.1 sibling $4 $(($4 + 2000)) name=sibling"
  mkdir -p "$dir/$1"; chmod 777 "$dir/$1"
  printf '%s\n' "http_port 127.0.0.1:$2 accel no-vhost defaultsite=cache" "icp_port $(($2 + 2000))" "udp_incoming_address 127.0.0.1" "cache_peer 127.0.0.1 parent $3 0 no-query originserver name=origin" \
    "$sibling" "http_access allow all" "icp_access allow all" "cache_mem 512 MB" "access_log none" "cache_log $dir/$1/log" "cache_store_log none" "pid_filename none" "coredump_dir $dir/$1" \
    "visible_hostname $1" "shutdown_lifetime 1 second" > "$work/$1.conf"
  start "$1" "$2" "${pin[@]}" squid -N -f "$work/$1.conf"
}
# run NAME [ORIGIN]: one of the servers.
run() {
  local pin=("${server[@]}") origin=${2:-18080} tls=(--https 127.0.0.1:18284 --https-cert "$work/cert.pem" --https-key "$work/key.pem")
  case $1 in
  nginx | tuned) run_nginx "$1" "${port[$1]}" "$origin" ;;
  varnish) start varnish 18082 "${pin[@]}" varnishd -F -a 127.0.0.1:18082 -b "127.0.0.1:$origin" -s "malloc,$([ "$what" = turnover ] && echo 256m || echo 8G)" -n "$dir/varnish" ;;
  floor) start floor 18083 env GOMAXPROCS="$cpus" "${pin[@]}" "$work/floor" 127.0.0.1:18083 "127.0.0.1:$origin" ;;
  squid) run_squid squid 18086 18080 "${2:+18096}" ;;
  peer) [ -n "${2:-}" ] && tls=(--join 127.0.0.1:20094); [ "$what" = log ] && tls=(--access-log "$work/peer-access.log"); run_peer peer 18084 "${tls[@]}" ;;
  esac
}
family() { local of=$1 more; while more=$(pgrep -P "${of// /,}") && [[ " $of " != *" ${more//$'\n'/ } "* ]]; do of+=" ${more//$'\n'/ }"; done; echo "$of"; }
# proc SERVER FILE: this file of all processes of a server, except those that end meanwhile, as nginx's cache loader does.
proc() {
  local p text of
  kill -0 "${pid[$1]}" || { echo "$1 has ended" >&2; cat "$work/$1.log" >&2; return 1; }
  of=$(family "${pid[$1]}")
  for p in $of; do
    text=$(cat "/proc/$p/$2" 2>&1) || { [ ! -e "/proc/$p" ] && continue; echo "$text" >&2; return 1; }
    echo "$text"
  done
}
# cpu SERVER: µs. A process has the time of its children that ended in fields of their own.
cpu() { proc "$1" stat | awk -v hz="$(getconf CLK_TCK)" '{sub(/.*\)/, ""); t += $12 + $13 + $14 + $15} END {printf "%.0f", t / hz * 1e6}'; }
memory() { proc "$1" status | awk -v f="$2:" '$1 == f {t += $2} END {print t}'; }
# turns ROUND: the servers in turn, in every second round from the last to the first. Where the first touch of free memory costs much, whoever is measured first
# has an advantage.
turns() { local s order=(); for s in $servers; do if [ $(($1 % 2)) = 1 ]; then order+=("$s"); else order=("$s" "${order[@]}"); fi; done; echo "${order[@]}"; }
median() { printf '%s\n' "$@" | sort -g | sed -n "$((($# + 1) / 2))p"; }
# told N: until peer knows that filled-peer has so many objects.
told() {
  local held
  for _ in $(seq 200); do
    held=$(curl -sSf http://127.0.0.1:19084/metrics | awk '/^peer_member_digest_keys.*filled-peer/ {n = int($2)} END {print n + 0}')
    [ "$held" -lt "$1" ] || break
    sleep 0.1
  done
}
# from_sibling SHARE: what peer did not get from filled-peer would be measured as something else.
from_sibling() {
  curl -sSf http://127.0.0.1:19084/metrics | awk -v share="$1" '/^peer_requests_total\{/ {all += $2} /^peer_requests_total\{outcome="sibling-hit"/ {hits = $2} END {if (hits < share * all) print "only", hits, "of", all, "from the sibling" > "/dev/stderr"}'
}
