#!/usr/bin/env bash
# Peer against nginx's proxy_cache, Varnish, and the least that a proxy of net/http can do, by wrk, side by side in one run.
#
#   cmd/peer/internal/proxy/bench-nginx.sh [-t SECONDS] [-r ROUNDS] [-c CPUS] [-n OBJECTS] [-p PROFILES] [-w DIRECTORY] [-s "SERVERS..."] [ROW...]
#
#   -t  length of a round, default 3     -r  rounds of each server, by turns, default 4; the medians count
#   -c  CPUs a server has, default 1     -n  objects of the row "many", default 100000
#   -p  write a CPU profile of peer's last round of each row to this directory
#   -w  where the stores are, default: below the temporary directory
#   -s  of nginx, tuned, varnish, floor and peer, default all; tuned is nginx with open_file_cache
#
# A row is WHAT-SIZE-CONNECTIONS: "hit" of one object, also by "log" (with an access log), "tls" and "h2c" (HTTP/2 in the clear, by h2load); "miss" of one that
# nobody has; "turnover", the same with full stores of 256 MiB that evict as much as comes; "sibling", of one that a sibling has: for nginx and Varnish, the origin is another nginx with a full cache. Or "many": objects of 1 KiB are
# fetched once at 64 connections, then hits are spread over them, then the server is killed and started again. Default: all of the table in BENCHMARKS.md.
#
# Stores are new for each row, and nothing is deleted before the end, but by servers in "turnover". On ext4 without a journal a new file cannot have the inode of one
# that was deleted within the last minutes, and the kernel searches past all of these: servers that make a file an object then measure the deletions before them.
# For the same reason, wait five minutes between two runs there. The file system is printed.
#
# Installs what it needs where apt-get can. Prints Markdown. CPU µs is the time of processors, user's and system's, that the server alone took for a request: other
# work on the machine disturbs it less than it does rates. The server has CPU 0 for itself where -c is 1, and everything else the others.
# PEER names a binary to measure, default: what is built here.
set -Eeuo pipefail
trap 'echo "bench-nginx: line $LINENO failed: $BASH_COMMAND" >&2' ERR # so that it never ends without a word
seconds=3 rounds=4 cpus=1 objects=100000 profiles= servers="nginx tuned varnish floor peer" where=${TMPDIR:-/tmp}
while getopts t:r:c:n:p:w:s: o; do
  case $o in
  t) seconds=$OPTARG ;; r) rounds=$OPTARG ;; c) cpus=$OPTARG ;; n) objects=$OPTARG ;; p) profiles=$(realpath -m "$OPTARG"); mkdir -p "$profiles" ;; w) where=$OPTARG ;; s) servers=$OPTARG ;;
  *) sed -n '2,25s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
rows=("$@")
[ $# -gt 0 ] || rows=(hit-1k-32 hit-64k-32 hit-1m-32 hit-1k-256 miss-1k-32 miss-64k-32 turnover-64k-32 sibling-1k-32 sibling-64k-32 sibling-1k-1 sibling-64k-1 many)
cd "$(dirname "$0")/../../../.."
declare -A package=([nginx]=nginx-light [wrk]=wrk [varnishd]=varnish [curl]=curl [openssl]=openssl [h2load]=nghttp2-client)
. cmd/peer/internal/proxy/bench.sh
# load PORT SIZE CONNECTIONS MODE FROM: prints requests a second, p50 and p99 in ms, requests, the next number. MODE: one, new or random objects.
load() {
  if [ "$what" = h2c ]; then
    "${others[@]}" h2load -t1 -c"$3" -m1 -D"$seconds" "http://127.0.0.1:$1/$2/1" | awk -v s="$seconds" '/^finished in/ {print $4, "-", "-", int($4 * s), 1}'
    return
  fi
  cat > "$work/load.lua" <<LUA
local n, mode, last = $5, "$4", $objects
if mode == "one" then wrk.path = "/$2/1" else request = function()
  n = n + 1
  return wrk.format(nil, "/$2/" .. (mode == "new" and n or math.random(last)))
end end
done = function(s, l)
  local e = s.errors.connect + s.errors.read + s.errors.write + s.errors.status + s.errors.timeout
  if e > 0 then io.stderr:write("$1 $2: ", e, " errors\n") end
  print("RESULT", s.requests / s.duration * 1e6, l:percentile(50) / 1e3, l:percentile(99) / 1e3, s.requests, $5 + s.requests + 2 * $3)
end
LUA
  local scheme=http; [ "$what" = tls ] && scheme=https
  "${others[@]}" wrk -t1 -c"$3" -d"${seconds}s" -s "$work/load.lua" "$scheme://localhost:$1" | awk '/^RESULT/ {$1 = ""; print}'
}
declare -A got=() next=()
# measure SERVER SIZE CONNECTIONS MODE: one round; its row gets a line in got[SERVER]: rate p50 p99 CPU.
measure() {
  local at=${port[$1]} before after r
  case $what in log) [[ $1 =~ nginx|tuned ]] && at=$((at + 100)) ;; tls) at=$((at + 200)) ;; h2c) [[ $1 =~ nginx|tuned ]] && at=$((at + 300)) ;; esac
  [ "$4" != one ] || "${others[@]}" curl -sSkf -o /dev/null "http$([ "$what" = tls ] && echo s)://localhost:$at/$2/1" $([ "$what" = h2c ] && echo --http2-prior-knowledge)
  if [ -n "$profiles" ] && [ "$1" = peer ]; then curl -sS -o "$profiles/$row.cpu" "http://127.0.0.1:19084/debug/pprof/profile?seconds=$seconds" & fi
  before=$(cpu "$1"); r=($(load "$at" "$2" "$3" "$4" "${next[$1]:-100}")); after=$(cpu "$1")
  [ "$4" = new ] && next[$1]=${r[4]}
  got[$1]+="${r[0]} ${r[1]} ${r[2]} $(awk -v t=$((after - before)) -v n="${r[3]}" 'BEGIN {print t / (n + 0.001)}') ${r[3]}"$'\n'
}
field() { median $(cut -d' ' -f"$2" <<<"${got[$1]:-}" | sed '/^$/d'); }
f() { LC_ALL=C printf "%.$1f" "${2/-/}"; }
shown=(nginx tuned varnish floor peer)
# column FIELD FORMAT: a cell for each server; ratio A B FIELD: A's by B's.
column() { local s; for s in "${shown[@]}"; do [ -z "${got[$s]:-}" ] || printf " $2" "$(field "$s" "$1")"; printf ' |'; done; }
ratio() { [ -z "${got[$1]:-}" ] || [ -z "${got[$2]:-}" ] || awk -v a="$(field "$1" "$3")" -v b="$(field "$2" "$3")" 'BEGIN {printf " **%.2f**", a / b}'; printf ' |'; }
print_row() { # TITLE
  local s
  printf '| %s |' "$1"
  column 1 %.0f; ratio peer nginx 1; ratio peer tuned 1
  column 4 %.0f; ratio nginx peer 4; ratio tuned peer 4
  for s in "${shown[@]}"; do [ -z "${got[$s]:-}" ] || printf ' %s, %s' "$(f 2 "$(field "$s" 2)")" "$(f 1 "$(field "$s" 3)")"; printf ' |'; done
  echo
}
fill() { # PORT SIZE SECONDS: what a sibling is to have
  local seconds=$3; load "$1" "$2" 64 new 100 | awk '{print $4}'
}
many() { # SERVER
  local empty full n=0 t=0 r before after bytes files began now peak
  run "$1"; empty=$(memory "$1" VmRSS); next[$1]=100
  before=$(cpu "$1")
  while [ "$n" -lt "$objects" ]; do r=($(load "${port[$1]}" 1k 64 new $((100 + n)))); n=$((n + r[3])); t=$(awk -v t="$t" -v r="${r[0]}" -v k="${r[3]}" 'BEGIN {print t + k / r}'); done
  after=$(cpu "$1")
  got_fill[$1]="$(awk -v n="$n" -v t="$t" -v c=$((after - before)) 'BEGIN {printf "%.0f/s, %.0f µs", n / t, c / n}')"
  sleep 2; full=$(memory "$1" VmRSS)
  files=$dir/cache-$1; [ "$1" = peer ] && files=$dir/store-peer
  bytes=-; [ ! -d "$files" ] || bytes=$(($(du -sk "$files" | cut -f1) * 1024 / n))
  got_size[$1]="$(((full - empty) * 1024 / n)) B, $bytes B"
  for _ in $(seq "$rounds"); do measure "$1" 1k 32 random; done
  kill -9 $(family "${pid[$1]}"); wait "${pid[$1]}" 2>/dev/null || true; unset "pid[$1]"
  got_reload[$1]="nothing"
  if [ "$1" != varnish ]; then # which has all in memory
    began=$(date +%s%3N); run "$1"; now=$(date +%s%3N); peak=$(memory "$1" VmHWM)
    got_reload[$1]="$(((now - began))) ms, $((peak / 1024)) MiB"
    kill "${pid[$1]}"; wait "${pid[$1]}" 2>/dev/null || true; unset "pid[$1]"
  fi
}

echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg); $(nginx -v 2>&1 | sed 's/.*: //'); $(varnishd -V 2>&1 | grep -o 'varnish-[0-9.]*' | head -n 1); $("$PEER" version | grep -o 'go1[^ ,)]*' | head -n 1); $rounds rounds of $seconds s each, a server has $cpus CPU(s); stores on $(findmnt -no FSTYPE -T "$work") ($(findmnt -no OPTIONS -T "$work"))"
echo
echo "| row | nginx/s | tuned | varnish | floor | peer | peer/nginx | peer/tuned | CPU µs nginx | tuned | varnish | floor | peer | nginx/peer CPU | tuned/peer | ms p50, p99: nginx | tuned | varnish | floor | peer |"
echo "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
for row in "${rows[@]}"; do
  IFS=- read -r what size connections <<<"$row"
  got=() next=() dir=$work/$row
  mkdir "$dir"
  pin=("${others[@]}"); run_nginx origin 18080 ""
  case $what in
  many)
    declare -A got_fill=() got_size=() got_reload=()
    for s in $servers; do [ "$s" = floor ] || many "$s"; done
    print_row "hits spread over $objects"
    for s in $servers; do [ "$s" = floor ] || printf '\n%s: filled at %s of CPU each; memory, disk an object %s; killed and back after %s\n' "$s" "${got_fill[$s]}" "${got_size[$s]}" "${got_reload[$s]}" >> "$work/after"; done ;;
  sibling)
    pin=("${others[@]}"); run_nginx filled 18091 18080
    need=$((seconds * rounds * 2 + 2)); full=1
    { has nginx || has varnish || has floor; } && fill 18091 "$size" $need >/dev/null
    if has peer; then pin=("${others[@]}"); run_peer filled-peer 18094; full=$(fill 18094 "$size" $need); fi
    for s in $servers; do run "$s" 18091; done
    ! has peer || told "$full"
    for i in $(seq "$rounds"); do for s in $(turns "$i"); do measure "$s" "$size" "$connections" new; done; done
    ! has peer || from_sibling 0.95
    print_row "$row" ;;
  *)
    mode=new; [[ $what =~ ^(miss|turnover)$ ]] || mode=one
    for s in $servers; do [ "$mode" = one ] && [ "$s" = floor ] || run "$s"; done
    if [ "$what" = turnover ]; then
      for s in $servers; do while [ $(((${next[$s]:=100} - 100) * $(stat -c %s "$work/www/$size"))) -lt $((384 << 20)) ]; do r=($(load "${port[$s]}" "$size" 64 new "${next[$s]}")); next[$s]=${r[4]}; done; done
    fi
    for i in $(seq "$rounds"); do for s in $(turns "$i"); do [ "$mode" = one ] && [ "$s" = floor ] || measure "$s" "$size" "$connections" $mode; done; done
    print_row "$row" ;;
  esac
  stop_all
done
[ ! -f "$work/after" ] || cat "$work/after"
