#!/bin/sh
# A fake engine for the harness's tests: prints llama-bench's JSON at once, with rates that follow from its arguments and a
# counter, and does on demand what bad engines do. Called like memra (`bench`, `check`) or like llama-bench. Its times are
# of microseconds, since it runs for milliseconds.
#
# Beside it lie: `count` (launches so far), `drift` (percent by which every launch is slower than the one before),
# `noise` (amplitude in percent), `mode` (what `bench` does wrong, for an engine that takes no --set).
here=$(dirname "$0")
fa=1 reps=1 threads=1 n_prompt=0 n_gen=0 n_depth=0 slow=0 wrong='' model='' command=bench
mode=$(cat "$here/mode" 2>/dev/null)
while [ $# -gt 0 ]; do
  case $1 in
    --version) echo "fake 1.0"; exit 0 ;;
    check | doctor | plan | pull | synth | probe | sweep | ab | board) command=$1 ;;
    -m | --model) shift; model=$1 ;;
    -p) shift; n_prompt=$1 ;;
    -n) shift; n_gen=$1 ;;
    -d) shift; n_depth=$1 ;;
    -r) shift; reps=$1 ;;
    -t) shift; threads=$1 ;;
    --set)
      shift
      case $1 in
        fault.slow=*%) slow=${1#fault.slow=}; slow=${slow%\%} ;;
        fault.wrong=*) wrong=${1#fault.wrong=} ;;
        mode=*) mode=${1#mode=} ;;
        *) echo "unknown key $1" >&2; exit 2 ;;
      esac ;;
    -fa) shift; [ "$1" = off ] && fa=0 ;;
    --budget | --a | --b | -o) shift ;;
  esac
  shift
done

if [ "$command" != bench ]; then
  . "$here/commands.sh"
  exit 0
fi

n=$(cat "$here/count" 2>/dev/null || echo 0)
echo $((n + 1)) > "$here/count"
flags="\"backends\":\"CPU\",\"flash_attn\":$fa,\"type_k\":\"f16\",\"type_v\":\"f16\",\"repack\":true"
case $mode in
  die) echo "something is broken" >&2; exit 1 ;;
  crash) kill -SEGV $$ ;;
  hang) sleep 1000 & wait ;;
  empty) exit 0 ;;
  garbage) echo "Illegal instruction (core dumped)"; exit 0 ;;
  flood) head -c 40000000 /dev/zero; exit 0 ;;
  bytes) printf '\377\376{"n_prompt"\n'; exit 0 ;;
  tokens) n_gen=$((n_gen / 2)) ;;
  backend) flags='"backends":"CUDA"' ;;
  threads) threads=99 ;;
  flags) flags="\"backends\":\"CPU\",\"flash_attn\":1,\"type_k\":\"f16\",\"type_v\":\"f16\",\"repack\":true" ;;
  escape) setsid sleep 5 & ;;
  later) [ "$n" -ge 20 ] && exit 1 ;;
esac
rate=100000000
[ "$n_gen" -gt 0 ] && rate=10000000
[ "$mode" = slow ] && rate=1
[ "$mode" = fallback ] && [ "$n_prompt" -gt 0 ] && rate=1000000
awk -v n="$n" -v rate="$rate" -v slow="$slow" -v reps="$reps" -v tokens=$((n_prompt + n_gen)) \
  -v noise="$(cat "$here/noise" 2>/dev/null || echo 0.1)" -v drift="$(cat "$here/drift" 2>/dev/null || echo 0)" \
  -v head="{\"build_commit\":\"f\",\"n_threads\":$threads,$flags,\"n_prompt\":$n_prompt,\"n_gen\":$n_gen,\"n_depth\":$n_depth" '
BEGIN {
  # Noise of the launch: a fixed sequence without a period that pairs or blocks could fall in step with.
  x = n * 0.6180339887498949; x -= int(x)
  rate = rate / (1 + slow / 100) / (1 + drift / 100 * n) * (1 + noise / 100 * (2 * x - 1))
  for (i = 0; i < reps; i++) {
    ns = ns (i ? "," : "") sprintf("%.0f", tokens / rate * 1e9)
    ts = ts (i ? "," : "") sprintf("%.4f", rate)
  }
  print head ",\"memra_bytes_per_token\":1000000,\"memra_output_hash\":\"abc\",\"samples_ns\":[" ns "],\"samples_ts\":[" ts "]}"
}'
