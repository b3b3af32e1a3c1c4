#!/usr/bin/env bash
# What a server costs that has little to do: peer beside nginx, Varnish and Squid, one at a time, before the same origin.
#
#   cmd/peer/internal/proxy/bench-quiet.sh [-t SECONDS] [-r ROUNDS] [-n] [-w DIRECTORY] [-s "SERVERS..."] [ROW...]
#
#   -t  length of a round, default 30        -r  rounds of each server, in turns, every second one in the other order, default 2; their sums count
#   -n  without the run under strace         -w  where the stores are, default: below the temporary directory
#   -s  of nginx, tuned, varnish, squid and peer, default "nginx varnish squid peer"
#
# A row is WHAT-RATE: "hit" of one object of 1 KiB, "miss" of one that nobody has, or "sibling", of one that a sibling has: another peer, a Squid that is asked by ICP,
# or for nginx and Varnish an origin with a full cache. RATE is that of requests a second, which come as they like (exponential pauses) over 8 connections. "pair": two of a
# kind that ask each other, peers or Squids, each with RATE requests a second for 3,000 objects by Zipf's law; counted are both, and a request to either. Or "rest": what is
# counted then is that of a second. Default: hits, misses and siblings at 0.5, 5 and 50, a pair at 6.7, and rest.
#
# Counted are processor time (schedstat of all threads), voluntary switches, and system calls, by strace in a run of their own in which all servers are
# measured at the same time. Rest's share is in all of them. On a busy machine the times are too long, and switches fewer. PEER names a binary to measure.
set -Eeuo pipefail
trap 'echo "bench-quiet: line $LINENO failed: $BASH_COMMAND" >&2' ERR
seconds=30 rounds=2 cpus=$(nproc) servers="nginx varnish squid peer" where=${TMPDIR:-/tmp} calls=yes
while getopts t:r:nw:s: o; do
  case $o in
  t) seconds=$OPTARG ;; r) rounds=$OPTARG ;; n) calls= ;; w) where=$OPTARG ;; s) servers=$OPTARG ;;
  *) sed -n '2,19s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
rows=("$@")
[ $# -gt 0 ] || rows=(rest hit-0.5 hit-5 hit-50 miss-0.5 miss-5 miss-50 sibling-0.5 sibling-5 sibling-50 pair-6.7)
cd "$(dirname "$0")/../../../.."
declare -A package=([nginx]=nginx-light [varnishd]=varnish [squid]=squid [curl]=curl [openssl]=openssl [strace]=strace)
. cmd/peer/internal/proxy/bench.sh
go build -o "$work/load" ./cmd/peer/internal/proxy/benchload

declare -A next=() got=() called=()
# send SERVER: one round of requests, or a pause; prints how many there were (seconds, at rest), how many failed, p50 and p99.
send() {
  local at="http://127.0.0.1:${port[$1]}/1k/"
  case $what in
  rest) sleep "$seconds"; echo "$seconds 0 0 0" ;;
  hit) "$work/load" -s "$seconds" "$rate" "${at}1" ;;
  pair)
    for n in 0 10; do "$work/load" -among 3000 -seed "$((next[$1] + n))" -s "$seconds" "$rate" "${at/${port[$1]}/$((port[$1] + n))}" & done | # the second is at 10 ports more
      awk '{n += $1; failed += $2; if ($3 > a) a = $3; if ($4 > b) b = $4} END {print n, failed, a, b}' ;;
  *) "$work/load" -n -first "${next[$1]}" -s "$seconds" "$rate" "$at" ;;
  esac
}
# processes SERVER: those that are counted.
processes() {
  family "${pid[$1]}"
  [ "$what" != pair ] || family "${pid[filled-$1]}"
}
# counted SERVER: µs of processor time and voluntary switches of all of its threads.
counted() {
  local p
  for p in $(processes "$1"); do cat /proc/"$p"/task/*/schedstat /proc/"$p"/task/*/status 2>"$work/ended" || true; done | # as nginx's cache loader does
    awk 'NF == 3 && $1 ~ /^[0-9]+$/ {cpu += $1} /^voluntary/ {n += $2} END {printf "%.0f %d\n", cpu / 1000, n}'
}
measure() {
  local before after r
  before=($(counted "$1")); r=($(send "$1")); after=($(counted "$1"))
  [ "$what" = rest ] || next[$1]=$((next[$1] + r[0]))
  [ "${r[1]}" = 0 ] || echo "$row: $1 failed ${r[1]} of ${r[0]} requests" >&2
  got[$1]+="${r[0]} $((after[0] - before[0])) $((after[1] - before[1])) ${r[2]} ${r[3]}"$'\n'
}
# trace SERVER: the system calls of a round.
trace() {
  local p all=() r
  for p in $(processes "$1"); do all+=(-p "$p"); done
  strace -c -f -o "$work/strace-$1" "${all[@]}" 2>/dev/null & p=$!
  sleep 1; r=($(send "$1")); kill -INT $p; wait $p || true
  awk -v n="${r[0]}" '$NF == "total" {for (i = NF - 1; i > 3 && $i !~ /^[0-9]+$/;) i--; printf "%.1f", $4 / n}' "$work/strace-$1" > "$work/calls-$1"
}
of() { awk -v f="$2" '{n += $1; t += $f} END {printf "%.*f", f == 2 ? 0 : 1, t / n}' <<<"$(sed '/^$/d' <<<"${got[$1]}")"; }
late() { awk '{if ($4 > a) a = $4; if ($5 > b) b = $5} END {printf "%.1f, %.1f", a, b}' <<<"$(sed '/^$/d' <<<"${got[$1]}")"; }

echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $cpus CPUs, load $(cut -d' ' -f1 /proc/loadavg); $(nginx -v 2>&1 | sed 's/.*: //'); $(varnishd -V 2>&1 | grep -o 'varnish-[0-9.]*' | head -n 1); $(squid -v 2>/dev/null | sed -n 's/.*Version /squid /p'); $("$PEER" version | grep -o 'go1[^ ,)]*' | head -n 1); $rounds rounds of $seconds s"
echo
head="| row |" rule="|---|"
for column in "CPU µs" "switches" "system calls"; do for s in $servers; do head+=" $column $s |" rule+="--:|" column=; done; done
for s in $servers; do head+=" p50, p99 ms, longest round: $s |" rule+="--:|"; done
echo "$head"; echo "$rule"
columns=$servers
for row in "${rows[@]}"; do
  IFS=- read -r what rate <<<"$row"
  servers=$columns
  [ "$what" != pair ] || servers=$(grep -ow 'squid\|peer' <<<"$columns" | xargs)
  got=() called=() dir=$work/$row pin=() origin=18080
  mkdir "$dir"
  run_nginx origin 18080 ""
  if [ "$what" = sibling ]; then
    origin=18091
    many=$(awk -v r="$rate" -v s="$seconds" -v n="$((rounds + 1))" 'BEGIN {printf "%d", 200 + 2 * r * s * n}')
    filled=()
    { has nginx || has varnish; } && { run_nginx filled 18091 18080; filled+=(18091); }
    has peer && { run_peer filled-peer 18094; filled+=(18094); }
    has squid && { run_squid filled-squid 18096 18080 ""; filled+=(18096); }
    for at in "${filled[@]}"; do seq 1 $((100 + many)) | sed "s|.*|url = http://127.0.0.1:$at/1k/&\noutput = /dev/null|" | curl -sSf -K -; done
  fi
  if [ "$what" = pair ]; then
    has peer && run_peer filled-peer 18094
    has squid && run_squid filled-squid 18096 18080 18086
  fi
  for s in $servers; do
    if [ "$what" = sibling ] || [ "$what" = pair ]; then run "$s" 18091; else run "$s"; fi
    next[$s]=100
    curl -sf -o /dev/null "http://127.0.0.1:${port[$s]}/1k/1"
  done
  [ "$what" != sibling ] || ! has peer || told $((100 + many))
  sleep 3
  for i in $(seq "$rounds"); do for s in $(turns "$i"); do measure "$s"; done; done
  [ "$what" != sibling ] || ! has peer || from_sibling 0.95
  [ "$what" != pair ] || ! has peer || from_sibling 0.05
  if [ "$calls" ]; then
    all=(); for s in $servers; do trace "$s" & all+=($!); done; wait "${all[@]}"
  fi
  printf '| %s |' "$row"
  for f in 2 3; do for s in $columns; do if has "$s"; then printf ' %s |' "$(of "$s" $f)"; else printf ' |'; fi; done; done
  for s in $columns; do if [ "$calls" ] && has "$s"; then printf ' %s |' "$(cat "$work/calls-$s")"; else printf ' |'; fi; done
  for s in $columns; do if has "$s"; then printf ' %s |' "$(late "$s")"; else printf ' |'; fi; done
  echo
  stop_all
done
