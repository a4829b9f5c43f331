#!/usr/bin/env bash
# Times Tailor beside what one would otherwise point at a transcript (programs, libraries that read JSON, and tools for
# sessions), and prints Markdown tables.
#
#   benches/rivals.sh [BYTES]        (default: 1 GB a file; needs that much room in $TMPDIR)
#
# One generated file a format; each row is the median of five runs after a warm-up, and all rows of a table take turns.
# RIVALS_JQ_RUNS sets jq's number of runs, because it is slow. Build first: cargo build --profile dist. The readers are built here, and the tools for sessions
# (clustervision's `cv`, cozempic, ccusage) are installed into a folder of their own if they are not there;
# RIVALS_TOOLS names one that stays.

set -eu

bytes=${1:-1000000000}
jq_runs=${RIVALS_JQ_RUNS:-5}
here=$(cd "$(dirname "$0")" && pwd)
tailor="${CARGO_TARGET_DIR:-$here/../target}/dist/tailor"
[ -x "$tailor" ] || { echo "no $tailor: cargo build --profile dist" >&2; exit 1; }
tools=${RIVALS_TOOLS:-}
work=$(mktemp -d "${TMPDIR:-/tmp}/rivals.XXXXXX")
trap 'rm -rf "$work"' EXIT
tools=${tools:-$work/tools}
mkdir -p "$tools"

# measure NAME RUNS PREPARE COMMAND...: a row of the table. PREPARE is shell text that is not timed; exit codes 0 and 1 are
# fine. The ratios are to the first row.
measure() { printf '%s\0' $(($# + 1)) "$@" >>"$work/rows"; }

# Prints the rows since the header. They run in turns, so that whatever else the machine does slows all of them alike; ratios
# are those of one turn.
table() {
    python3 -I - "$work/rows" <<'PYTHON'
import os, re, statistics, subprocess, sys, time

fields, rows = open(sys.argv[1], "rb").read().decode().split("\0")[:-1], []
while fields:
    count = int(fields[0])
    (name, runs, prepare, *command), fields = fields[1:count], fields[count:]
    rows.append({"name": name, "runs": int(runs), "prepare": prepare, "command": command, "peak": 0, "times": {}})

def run(row, turn):
    if row["prepare"]:
        subprocess.run(["sh", "-c", row["prepare"]], check=True)
    start = time.perf_counter()
    child = subprocess.Popen(row["command"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    status = f"/proc/{child.pid}/status"
    while turn == 0 and (found := re.search(r"VmHWM:\s+(\d+) kB", open(status).read())):
        row["peak"] = max(row["peak"], int(found[1]))  # the warm-up; ru_maxrss would count this program's own size
        time.sleep(0.001)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    row["times"][turn] = (time.perf_counter() - start, used.ru_utime + used.ru_stime)
    if child.returncode not in (0, 1):
        row["failed"] = child.returncode

for turn in range(1 + max(row["runs"] for row in rows)):
    for row in rows:
        if turn <= row["runs"] and "failed" not in row:
            run(row, turn)
for row in rows:
    name, times, first = row["name"], row["times"], rows[0]["times"]
    if "failed" in row:
        print(f"| {name} | failed with exit code {row['failed']} | | | | |", flush=True)
        continue
    turns = [turn for turn in times if turn]
    middle = lambda which: statistics.median(times[turn][which] for turn in turns)
    ratio = lambda which: statistics.median(times[turn][which] / first[turn][which] for turn in turns)
    print(f"| {name} | {middle(0):.3f} | {ratio(0):.2f} | {middle(1):.3f} | {ratio(1):.2f} | {row['peak'] / 1024:.0f} |", flush=True)
PYTHON
    rm -f "$work/rows"
    echo "Load: $(cut -d' ' -f1-3 /proc/loadavg)"
}

header() { # TITLE FILE
    printf '\n%s: %s bytes, %s lines\n\n' "$1" "$(stat -c %s "$2")" "$(wc -l <"$2")"
    echo "| command | seconds | × the first | seconds of CPU | × the first | peak RSS, MiB |"
    echo "|---|---:|---:|---:|---:|---:|"
}

skipped() { echo "SKIPPED: $*" >&2; }

# reader NAME LABEL FILE: a library over the lines of the file, on one core.
reader() {
    if [ -x "$readers" ]; then
        measure "$2" 5 '' taskset -c 0 "$readers" "$1" "$3"
    else
        skipped "$1: benches/readers could not be built"
    fi
}

# installed NAME COMMAND...: where the tool is, if it works. The command installs it if it is not there.
installed() {
    local name=$1 found
    shift
    found=$(tool "$name")
    if [ -z "$found" ]; then
        "$@" >"$tools/$name.log" 2>&1 || true
        found=$(tool "$name")
    fi
    # Some write into the home folder whatever they are asked.
    if [ -n "$found" ] && HOME="$work/home" COZEMPIC_NO_GLOBAL_INIT=1 "$found" --version >/dev/null 2>&1; then
        echo "$found"
    else
        skipped "$name does not work or could not be installed with: $*"
    fi
}

# tool NAME: where it is.
tool() {
    local found
    for found in "$tools/bin/$1" "$tools/node_modules/.bin/$1" "$(command -v "$1")"; do
        if [ -x "$found" ]; then
            echo "$found"
            return
        fi
    done
}

# The tools for sessions look for them below a home folder.
peers() { # FILE
    local home="$work/home" cv cozempic ccusage
    local session=$home/.claude/projects/-w/00000000-0000-4000-8000-000000000001.jsonl
    mkdir -p "${session%/*}"
    ln -f "$1" "$session"
    cv=$(installed cv cargo install --locked --root "$tools" clustervision)
    [ -z "$cv" ] || measure '`cv doctor`' 5 '' env HOME="$home" "$cv" doctor "$(basename "$session" .jsonl)"
    cozempic=$(installed cozempic sh -c "python3 -m venv '$tools' && '$tools/bin/pip' install -q cozempic")
    [ -z "$cozempic" ] || measure '`cozempic diagnose`' 3 '' env HOME="$home" COZEMPIC_NO_GLOBAL_INIT=1 "$cozempic" diagnose "$session"
    ccusage=$(installed ccusage npm install --prefix "$tools" --no-fund --no-audit ccusage@20.0.24)
    [ -z "$ccusage" ] || measure '`ccusage daily`' 3 '' env HOME="$home" "$ccusage" daily --offline --json
}

readers=${CARGO_TARGET_DIR:-$here/readers/target}/release/readers
cargo build --release --locked --quiet --manifest-path "$here/readers/Cargo.toml" || true

loads='
import json, sys
for line in open(sys.argv[1], "rb"):
    json.loads(line)'

for format in pi claude-code; do
    file="$work/$format.jsonl"
    python3 "$here/generate.py" "$format" "$bytes" 1 >"$file"
    header "Reading, $format" "$file"
    reader memchr 'read and `memchr` of `\n`, one core' "$file"
    measure '`wc -l`' 5 '' wc -l "$file"
    measure '`tailor scan`, one core' 5 '' taskset -c 0 "$tailor" scan --no-cache "$file"
    measure "\`tailor scan\`, $(nproc) cores" 5 '' "$tailor" scan --no-cache "$file"
    reader sonic-rs '`sonic-rs`, lazy, one core' "$file"
    reader simd-json '`simd-json`, tape, one core' "$file"
    if command -v rg >/dev/null; then
        measure '`rg -c tool_result`' 5 '' rg -c tool_result "$file"
    else
        skipped "rg (ripgrep) is not installed"
    fi
    if command -v jq >/dev/null; then
        measure '`jq -c .`' "$jq_runs" '' jq -c . "$file"
    else
        skipped "jq is not installed"
    fi
    measure 'python3, `json.loads` a line' 5 '' python3 -c "$loads" "$file"
    table

    small=$((bytes < 100000000 ? bytes : 100000000))
    python3 "$here/generate.py" "$format" "$small" 2 >"$file"
    if [ "$format" = claude-code ]; then
        header "Tools for sessions, $format" "$file"
        measure '`tailor scan`' 5 '' "$tailor" scan --no-cache "$file"
        peers "$file"
        table
        rm -rf "$work/home"
    fi
    copy="$work/copy.jsonl"
    header "Rewriting, $format" "$file"
    measure '`cp`, `sync` and `tailor scan`' 5 "rm -f '$copy'" \
        sh -c 'cp "$1" "$2" && sync "$2" && exec "$3" scan --no-cache "$1"' sh "$file" "$copy" "$tailor"
    measure '`tailor fix`' 5 "rm -rf '$work/vault' && cp '$file' '$copy' && sync '$copy' && sleep 2" "$tailor" fix --settle 0 --vault "$work/vault" "$copy"
    table
    rm -f "$file" "$copy"
done
