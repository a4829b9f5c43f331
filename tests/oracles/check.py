# Repairs copies of transcripts, lightens and compacts them, and asks the owning programs' own readers each time whether the
# conversation is still what it must be. `run` calls it.
#
#   CODEX=… python3 check.py [-v] TAILOR ORACLES WORK FORMAT… -- FILE…
#
# Each FILE lies in a folder that is named after its format, or in a fixture of it. What is asked of each:
#
#   fix          the conversation is the same, but for what the findings account for
#   dead weight  after `fix --only dead-weight` of what was fixed, it is exactly the same
#   dead rows    what S6, S7 and S21 take out are rows that Claude Code clears itself
#   compaction   after `recover --level 2`, it is a summary and as many messages from the end as were told; and
#                its dead weight can go as well (pi, Claude Code)
#
# Exits 1 if one is not so.

import collections
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import conversation
import items
from shared import Failed, Findings, Skipped, readable

HERE = Path(__file__).parent
FORMATS = ("pi", "claude-code", "codex")
COMPACTED = ("pi", "claude-code")
DEAD_WEIGHT = "--only=dead-weight"
LONG_AGO = time.time() - 30 * 24 * 3600  # whoever may hold it open unseen has long let go
# What Claude Code 2.1.330 calls `boundary-cleared` in its table of rows, by which it compacts its own files.
CLEARED = {
    "api-request", "api-request-blob", "api-request-resumed", "api-request-shape", "continued-in", "file-history-delta",
    "file-history-snapshot", "host-row", "last-prompt", "progress", "resume-head-vouch",
}  # fmt: skip
DEAD_ROWS = "S6,S7,S21"
# Real outputs of Codex are cut already, so limits are lower there.
LIMITS = {"codex": ["--cut-results=2000", "--cut-copies=1000"]}
# Arguments of fixtures that are not about what these comparisons know: profiles and old results have their own checks.
ELSEWHERE = re.compile(r"--(profile|stale|max-(?!summary|message)|tolerance|crowded)|dead-weight")


class Case:
    """One transcript, and its copies in a folder of its own."""

    def __init__(self, format, file, folder, tailor):
        self.format, self.file, self.folder, self.tailor = format, file, folder, tailor
        self.name = session_name(format, file)
        self.reads = []  # what the reader has to read
        self.checks = []  # (what, function), to be called once it has been read

    def copy(self, stage, data):
        path = self.folder / stage / self.name
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        os.utime(path, (LONG_AGO, LONG_AGO))
        return path

    def run(self, path, command, *arguments):
        """What Tailor says as JSON about the one file, and what is in the file afterwards."""
        vault = self.folder / "vault"
        said = subprocess.run(
            [self.tailor, *command, "--settle=0", f"--vault={vault}", *arguments, path], capture_output=True, check=False
        )
        reports = [json.loads(line) for line in said.stdout.decode().split("\n") if line]
        report = next((line for line in reports if line.get("type") in ("file", "recovery")), None)
        if report is None or (said.returncode > 1 and command[0] == "fix"):
            raise Failed(f"tailor {command[0]} exits {said.returncode}: {said.stderr.decode()[-300:]}")
        return report, path.read_bytes()

    def prepare(self):
        """Makes all copies and notes what is to be asked."""
        try:
            self.fix()
        except Failed as failed:
            self.say("fix", failed)

    def fix(self):
        data = Path(self.file).read_bytes()
        arguments = own_arguments(self.file) or LIMITS.get(self.format, [])
        report, fixed = self.run(self.copy("fixed", data), ["fix", "--format=json"], *arguments)
        findings = Findings(report, allowed(arguments))
        if findings.outcome != "fixed" and fixed != data:
            raise Failed(f"outcome is {findings.outcome}, but the bytes changed")
        if fixed == data:
            self.say("fix", Skipped("nothing to mend"))
        else:
            was = [self.copy("before", readable(data, findings))]
            if findings.mended("B2") and b'"firstKeptEntryIndex"' in data:
                was.append(self.copy("before-as-it-is", data))
            now = self.folder / "fixed" / self.name
            self.ask("fix", [now, *was], lambda *read: self.same(*read, findings=findings))
        self.lighten("dead weight", "light", fixed)
        if self.format == "claude-code":
            self.clear(fixed)
        if self.format in COMPACTED:
            self.compact(fixed, findings)

    def same(self, after, before, as_it_is=None, findings=None):
        if before.get("is_readers") or after.get("is_readers"):
            raise Skipped("its reader does not read what Claude Code does")
        if "problem" in after and ("problem" not in before or findings.outcome == "fixed"):
            held = "" if "problem" not in before else "still "
            if not held or not findings.left:
                raise Failed(f"{held}unreadable: {after['problem']}")
        if "problem" in before:
            if "problem" in after:
                raise Skipped("its reader reads neither the original nor what was mended", after["problem"])
            return f"unreadable before ({before['problem']}), {len(after['messages'])} messages now"
        if self.format == "codex":
            return items.same_items(before, after, findings)
        try:
            return conversation.same_conversation(before, after, findings)
        except Failed:
            # A compaction that counts lines: pi counts glued ones as one or as none, and what it kept is kept.
            if as_it_is is None:
                raise
            if "problem" in as_it_is:
                return f"unreadable before ({as_it_is['problem']}), {len(after['messages'])} messages now"
            return conversation.same_conversation(as_it_is, after, findings, more=True)

    def lighten(self, what, stage, data):
        _, light = self.run(self.copy(stage, data), ["fix", "--format=json"], DEAD_WEIGHT)
        if light == data:
            self.say(what, Skipped("no dead weight in it"))
            return
        heavy = self.copy(f"{stage}-before", data)
        self.ask(what, [heavy, self.folder / stage / self.name], self.exactly_same)

    def clear(self, data):
        path = self.copy("cleared", data)
        _, after = self.run(path, ["fix", "--format=json"], f"--select={DEAD_ROWS}", f"--allow={DEAD_ROWS}")
        gone = rows(data) - rows(after)
        wrong = sorted(set(gone) - CLEARED)
        if wrong:
            self.say("dead rows", Failed(f"gone, and Claude Code would keep them: {', '.join(wrong)}"))
        else:
            self.say("dead rows", f"{gone.total()} rows" if gone else Skipped("none in it"))

    def exactly_same(self, before, after):
        if "problem" in before:
            raise Skipped("its reader does not read it", before["problem"])
        if "problem" in after:
            raise Failed(f"unreadable: {after['problem']}")
        compare = items.exactly_same if self.format == "codex" else conversation.exactly_same
        return compare(before, after)

    def compact(self, fixed, findings):
        path = self.copy("compacted", fixed)
        report, after = self.run(path, ["recover", "--level=2", "--keep=3", "--json"])
        if report.get("outcome") != "fixed" or not report.get("left_out"):
            self.say("compaction", Skipped(f"not compacted: {report.get('reason') or report.get('outcome')}"))
            return
        was = self.copy("compacted-before", fixed)
        self.ask("compaction", [was, path], lambda *read: self.is_compacted(*read, report, findings))
        self.lighten("compaction, dead weight", "compacted-light", after)

    def is_compacted(self, before, after, report, findings):
        if "problem" in before:
            raise Skipped("its reader does not read it", before["problem"])
        if after.get("is_readers"):
            raise Skipped("its reader does not read what was made of it", after["problem"])
        if "problem" in after:
            raise Failed(f"unreadable: {after['problem']}")
        return conversation.compacted(before, after, report, findings)

    def ask(self, what, paths, compare):
        self.reads += paths
        self.checks.append((what, paths, compare))

    def say(self, what, outcome):
        self.checks.append((what, None, outcome))

    def outcomes(self, read):
        for what, paths, compare in self.checks:
            if paths is None:
                yield what, compare
                continue
            try:
                yield what, compare(*map(read, paths))
            except (Failed, Skipped) as stop:
                yield what, stop


def rows(data):
    """How many rows there are of each type."""
    types = collections.Counter()
    for line in data.split(b"\n"):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        types[str(row.get("type")) if isinstance(row, dict) else "?"] += 1
    return types


def session_name(format, file):
    """Claude Code finds a session by its file's name, so the copy is named after the session."""
    if format != "claude-code":
        return Path(file).name
    found = re.search(rb'"sessionId":"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"', Path(file).read_bytes())
    return f"{found[1].decode() if found else '00000000-0000-4000-8000-000000000000'}.jsonl"


def own_arguments(file):
    """The arguments of a fixture, if they are about what is compared here."""
    args = Path(file).parent / "policy.args"
    text = args.read_text() if args.exists() else ""
    return [] if ELSEWHERE.search(text) else text.split("\n")[:-1]


def allowed(arguments):
    """The codes whose guarded fixes these arguments ask for."""
    words = " ".join(arguments).replace("=", " ").split()
    codes = {value for flag, value in zip(words, words[1:]) if flag == "--allow"}
    return codes | ({"S4"} if "--only images" in " ".join(words) else set())


def readers(oracles):
    # Codex gets a network namespace of its own: loopback, and nothing else.
    alone = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    return {
        "pi": ["node", HERE / "read_pi.mjs", oracles],
        "claude-code": [oracles / "venv/bin/python", HERE / "read_claude.py"],
        "codex": [*alone, "python3", HERE / "read_codex.py", os.environ.get("CODEX", "")],
    }


def read_all(command, cases):
    """Has each different content read once. Returns a function from a path to what was read."""
    first, same_as = {}, {}
    for path in (path for case in cases for path in case.reads):
        same_as[path] = first.setdefault(hashlib.sha256(path.read_bytes()).digest(), path)
    subprocess.run(command, input="".join(f"{path}\n" for path in first.values()), text=True, check=True)
    return lambda path: json.loads(Path(f"{same_as[path]}.read").read_text())


def check(format, files, tailor, oracles, work, verbose):
    """Checks the files of a format; returns its outcomes, each as (what, outcome), and prints what is to be seen."""
    cases = [Case(format, file, work / format / str(n), tailor) for n, file in enumerate(files)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(Case.prepare, cases))
    read = read_all(readers(oracles)[format], cases)
    told = []
    for case in cases:
        for what, outcome in case.outcomes(read):
            told.append((what, outcome))
            failed = isinstance(outcome, Failed)
            if verbose or failed:
                kind = "FAILED: " if failed else "skipped: " if isinstance(outcome, Skipped) else "ok: "
                print(f"{case.file}, {what}: {kind}{outcome}".encode("utf-8", "replace").decode(), flush=True)
    return told


def summary(format, told):
    """How often each was so, and why the rest was skipped."""
    for what in dict.fromkeys(what for what, _ in told):
        own = [outcome for other, outcome in told if other == what]
        failed = sum(isinstance(outcome, Failed) for outcome in own)
        skipped = collections.Counter(outcome.reason for outcome in own if isinstance(outcome, Skipped))
        passed = len(own) - failed - skipped.total()
        print(f"{format}, {what}: {passed} passed, {failed} failed, {skipped.total()} skipped")
        for reason, count in skipped.most_common():
            print(f"    skipped: {reason}: {count}")


def main(arguments):
    verbose = arguments[0] == "-v"
    tailor, oracles, work, *rest = arguments[verbose:]
    split = rest.index("--")
    formats, files = rest[:split], rest[split + 1 :]
    told = []
    for format in formats:
        own = [file for file in files if f"/{format}/" in file]
        outcomes = check(format, own, tailor, Path(oracles), Path(work), verbose)
        summary(format, outcomes)
        told += outcomes
    failed = sum(isinstance(outcome, Failed) for _, outcome in told)
    skipped = sum(isinstance(outcome, Skipped) for _, outcome in told)
    print(f"{len(told) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
