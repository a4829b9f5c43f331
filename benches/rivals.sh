#!/usr/bin/env bash
# Times Tailor beside the tools that one would otherwise point at a transcript, and prints Markdown tables.
#
#   benches/rivals.sh [BYTES]        (default: 1 GB a file; needs that much room in $TMPDIR)
#
# One generated file a format; each row is the median of five runs after a warm-up. RIVALS_JQ_RUNS sets jq's number of
# runs, because it is slow. Build first: cargo build --profile dist.

set -eu

bytes=${1:-1000000000}
jq_runs=${RIVALS_JQ_RUNS:-5}
here=$(cd "$(dirname "$0")" && pwd)
tailor="$here/../target/dist/tailor"
[ -x "$tailor" ] || { echo "no $tailor: cargo build --profile dist" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/rivals.XXXXXX")
trap 'rm -rf "$work"' EXIT

# measure NAME RUNS PREPARE COMMAND...: one row of the table. PREPARE is shell text that is not timed; exit codes 0
# and 1 are fine. The first measurement after a header is the base of the ratios.
measure() {
    python3 -I - "$work/base" "$@" <<'PYTHON'
import os, re, statistics, subprocess, sys, time

base, name, runs, prepare, *command = sys.argv[1:]
runs, seconds, peak = int(runs), [], 0
for turn in range(runs + (runs > 1)):
    if prepare:
        subprocess.run(["sh", "-c", prepare], check=True)
    start = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while turn == 0 and child.poll() is None:  # the warm-up; ru_maxrss would count this program's own size
        status = open(f"/proc/{child.pid}/status").read()
        peak = max([peak, *map(int, re.findall(r"VmHWM:\s+(\d+) kB", status))])
        time.sleep(0.001)
    code = child.wait()
    seconds.append(time.perf_counter() - start)
    if code not in (0, 1):
        print(f"| {name} | failed with exit code {code} | | |", flush=True)
        sys.exit()
median = statistics.median(seconds[-runs:])
if not os.path.exists(base):
    open(base, "w").write(str(median))
ratio = median / float(open(base).read())
print(f"| {name} | {median:.3f} | {ratio:.2f} | {peak / 1024:.0f} |", flush=True)
PYTHON
}

header() { # TITLE FILE
    rm -f "$work/base"
    printf '\n%s: %s bytes, %s lines\n\n' "$1" "$(stat -c %s "$2")" "$(wc -l <"$2")"
    echo "| command | seconds | × \`wc -l\` | peak RSS, MiB |"
    echo "|---|---:|---:|---:|"
    measure '`wc -l`' 5 '' wc -l "$2"
}

loads='
import json, sys
for line in open(sys.argv[1], "rb"):
    json.loads(line)'

for format in pi claude-code; do
    file="$work/$format.jsonl"
    python3 "$here/generate.py" "$format" "$bytes" 1 >"$file"
    header "Reading, $format" "$file"
    if command -v rg >/dev/null; then
        measure '`rg -c tool_result`' 5 '' rg -c tool_result "$file"
    else
        echo "SKIPPED: rg (ripgrep) is not installed" >&2
    fi
    if command -v jq >/dev/null; then
        measure '`jq -c .`' "$jq_runs" '' jq -c . "$file"
    else
        echo "SKIPPED: jq is not installed" >&2
    fi
    measure 'python3, `json.loads` a line' 5 '' python3 -c "$loads" "$file"
    measure '`tailor scan`, one core' 5 '' taskset -c 0 "$tailor" scan "$file"

    small=$((bytes < 100000000 ? bytes : 100000000))
    python3 "$here/generate.py" "$format" "$small" 2 >"$file"
    copy="$work/copy.jsonl"
    header "Rewriting, $format" "$file"
    measure '`cp` and `sync`' 5 "rm -f '$copy'" sh -c 'cp "$1" "$2" && exec sync "$2"' sh "$file" "$copy"
    measure '`tailor fix`' 5 "rm -rf '$work/vault' && cp '$file' '$copy' && sync '$copy' && sleep 2" "$tailor" fix --settle 0 --vault "$work/vault" "$copy"
    rm -f "$file" "$copy"
done
