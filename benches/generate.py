# Writes one synthetic session of about the wanted size, for benchmarks. The same arguments give the same bytes.
#
#   python3 benches/generate.py {pi|claude-code} BYTES SEED > FILE
#
# The mix follows what real sessions hold: tool results of 500 characters in the median, 2 % of 200 KB; 0.5 % each of
# calls without a result, results without a call and results that come twice. The last turn is always whole.

import random
import sys
import time
from bisect import bisect

SIZES = [15, 60, 120, 200, 300, 380, 450, 500, 550, 700, 1000, 1600, 2600, 4500, 9000]  # characters, median 500
HUGE = 200_000
START = 1_767_225_600_000  # 2026-01-01, in ms

WORDS = "session config parser buffer handler request index cache token stream worker result error value path".split()
BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
LOGS = ["INFO", "DEBUG", "WARN", "ERROR"]
FOREIGN = ["naïve café", "größer als", "日本語のテスト", "✓ passed", "→ next", "🚀 shipped", "“quoted”"]
TOOLS = {"pi": ["bash", "read", "edit", "grep"], "claude-code": ["Bash", "Read", "Edit", "Grep"]}


class Source:
    """Cheap random material: slices of text that was escaped for JSON once, at the start."""

    def __init__(self, seed):
        self.random = random.Random(seed).random
        lines, self.starts, length = [], [], 0
        while length < 8 * HUGE:
            self.starts.append(length)
            lines.append(self.line().encode())
            length += len(lines[-1])
        self.pool = b"".join(lines)
        self.usable = bisect(self.starts, length - 2 * HUGE)
        self.base64 = "".join(self.pick(BASE64) for _ in range(9000))
        self.now = START

    def below(self, n):
        return int(self.random() * n)

    def pick(self, choices):
        return choices[self.below(len(choices))]

    def line(self):
        """One line of code or of a log, as JSON.stringify spells it."""
        a, b, c = (self.pick(WORDS) for _ in range(3))
        kind, n = self.below(10), self.below(100_000)
        if kind < 3:
            return rf"2026-01-{n % 28 + 1:02}T10:{n % 60:02}:07Z {self.pick(LOGS)} {a}: {b}={n} {c}=\"{a}-{n}\"\n"
        if kind < 6:
            return rf"\t\tif {a}.{b}({n}) != nil {{ return fmt.Errorf(\"{c} %q: %w\", {a}, err) }}\n"
        if kind < 8:
            return rf"    let {a}_{b} = self.{c}.get(\"{a}/{b}.rs\").unwrap_or({n}); // {b} of the {c}\n"
        if kind < 9:
            return rf"src\\{a}\\{b}.ts:{n}:  \"{c}\": [{n}, {n % 7}, \"{a}\"],\n"
        return rf"# {self.pick(FOREIGN)}: {a} {b} {c}\n" if self.random() < 0.5 else r"\n"

    def text(self, size):
        first = self.below(self.usable)
        end = bisect(self.starts, self.starts[first] + size)
        return self.pool[self.starts[first] : self.starts[end] - 2]  # without the last \n

    def result(self):
        if self.random() < 0.02:
            return self.text(HUGE)
        return self.text(int(self.pick(SIZES) * (0.75 + self.random() / 2)))

    def signature(self):
        start = self.below(8000)
        return self.base64[start : start + 300 + self.below(600)].encode()

    def hex(self, digits):
        return b"%0*x" % (digits, self.below(1 << 52) & ((1 << 4 * digits) - 1))

    def uuid(self):
        return b"%b-%b-4%b-a%b-%b" % (self.hex(8), self.hex(4), self.hex(3), self.hex(3), self.hex(12))

    def call_id(self):
        return b"toolu_01" + self.hex(11) + self.hex(11)

    def tick(self):
        """Some time later: ISO text and milliseconds."""
        self.now += 1 + self.below(4000)
        iso = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self.now // 1000))
        return b"%b.%03dZ" % (iso.encode(), self.now % 1000), self.now

    def answers(self, calls):
        """The ids that results name: each call once, but for the three kinds of damage."""
        for call in calls:
            roll = self.random()
            if roll >= 0.005:
                yield call
            if 0.005 <= roll < 0.010:
                yield call
            if 0.010 <= roll < 0.015:
                yield self.call_id()


class Pi:
    def __init__(self, source, out):
        self.s, self.out, self.parent, self.count = source, out, b"null", 0
        out(
            b'{"type":"session","version":3,"id":"%b","timestamp":"%b","cwd":"/w/project"}\n'
            % (source.uuid(), source.tick()[0])
        )
        self.entry(b"model_change", b'"provider":"anthropic","modelId":"claude-sonnet-4-5"')
        self.entry(b"thinking_level_change", b'"thinkingLevel":"medium"')

    def entry(self, kind, rest):
        self.count += 1
        id = b'"%08x"' % (self.count * 2654435761 & 0xFFFFFFFF)
        self.out(
            b'{"type":"%b","id":%b,"parentId":%b,"timestamp":"%b",%b}\n'
            % (kind, id, self.parent, self.s.tick()[0], rest)
        )
        self.parent = id

    def message(self, rest):
        self.entry(b"message", b'"message":{%b,"timestamp":%d}' % (rest, self.s.now))

    def user(self):
        self.message(b'"role":"user","content":[{"type":"text","text":"%b"}]' % self.s.text(150))

    def assistant(self, blocks, stop):
        self.message(
            b'"role":"assistant","content":[%b],"api":"anthropic-messages","provider":"anthropic",'
            b'"model":"claude-sonnet-4-5","usage":{"input":%d,"output":%d,"cacheRead":%d,"cacheWrite":512,'
            b'"totalTokens":91234,"cost":{"input":0.000012,"output":0.00171,"cacheRead":0.0264,"cacheWrite":0.00192,'
            b'"total":0.030042}},"stopReason":"%b"'
            % (b",".join(blocks), self.s.below(90), self.s.below(2000), self.s.below(90_000), stop)
        )

    def step(self):
        s, blocks, calls = self.s, [], {}
        if s.random() < 0.6:
            thought = s.text(300), s.signature()
            blocks.append(b'{"type":"thinking","thinking":"%b","thinkingSignature":"%b"}' % thought)
        if s.random() < 0.5:
            blocks.append(b'{"type":"text","text":"%b"}' % s.text(120))
        for _ in range(1 + (s.random() < 0.2)):
            id, tool = s.call_id(), s.pick(TOOLS["pi"]).encode()
            calls[id] = tool
            arguments = b'{"path":"src/%b.ts","command":"%b"}' % (s.pick(WORDS).encode(), s.text(150))
            blocks.append(b'{"type":"toolCall","id":"%b","name":"%b","arguments":%b}' % (id, tool, arguments))
        self.assistant(blocks, b"toolUse")
        for id in s.answers(calls):
            self.result(id, calls.get(id, b"bash"))

    def result(self, id, tool):
        text, details = self.s.result(), b""
        if tool == b"edit":
            details = b',"details":{"diff":"%b","firstChangedLine":%d}' % (text, self.s.below(900))
            text = b"Successfully replaced 1 block(s) in src/index.ts."
        elif self.s.random() < 0.2:
            details = b',"details":{"_type":"%bResult","text":"%b","exitCode":0}' % (tool, text)
        self.message(
            b'"role":"toolResult","toolCallId":"%b","toolName":"%b","content":[{"type":"text","text":"%b"}]%b,'
            b'"isError":false' % (id, tool, text, details)
        )

    def end(self):
        self.assistant([b'{"type":"text","text":"%b"}' % self.s.text(400)], b"stop")


class ClaudeCode:
    def __init__(self, source, out):
        self.s, self.out, self.parent = source, out, b"null"
        self.session = source.uuid()

    def row(self, parent, kind, rest):
        uuid = b'"%b"' % self.s.uuid()
        self.out(
            b'{"parentUuid":%b,"isSidechain":false,"userType":"external","cwd":"/w/project","sessionId":"%b",'
            b'"version":"2.1.200","gitBranch":"main","slug":"calm-otter","type":"%b",%b,"uuid":%b,"timestamp":"%b"}\n'
            % (parent, self.session, kind, rest, uuid, self.s.tick()[0])
        )
        return uuid

    def user(self):
        text = b'"message":{"role":"user","content":"%b"}' % self.s.text(150)
        self.parent = self.row(self.parent, b"user", text)
        self.out(
            b'{"type":"file-history-snapshot","messageId":%b,"snapshot":{"messageId":%b,"trackedFileBackups":{},'
            b'"timestamp":"%b"},"isSnapshotUpdate":false}\n' % (self.parent, self.parent, self.s.tick()[0])
        )

    def assistant(self, message, block, stop):
        """One block a line; the lines of one message share its id."""
        self.parent = self.row(
            self.parent,
            b"assistant",
            b'"message":{"model":"claude-sonnet-4-5","id":"msg_01%b","type":"message","role":"assistant",'
            b'"content":[%b],"stop_reason":%b,"stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":9158,'
            b'"cache_read_input_tokens":32764,"output_tokens":%d,"service_tier":"standard"}},"requestId":"req_01%b"'
            % (message, block, stop, self.s.below(900), message),
        )
        return self.parent

    def step(self):
        s, message, calls = self.s, self.s.hex(12) + self.s.hex(10), {}
        if s.random() < 0.6:
            thought = s.text(300), s.signature()
            self.assistant(message, b'{"type":"thinking","thinking":"%b","signature":"%b"}' % thought, b"null")
        if s.random() < 0.5:
            self.assistant(message, b'{"type":"text","text":"%b"}' % s.text(120), b"null")
        for _ in range(1 + (s.random() < 0.2)):
            id, tool = s.call_id(), s.pick(TOOLS["claude-code"]).encode()
            arguments = b'{"file_path":"/w/project/%b.ts","command":"%b"}' % (s.pick(WORDS).encode(), s.text(150))
            block = b'{"type":"tool_use","id":"%b","name":"%b","input":%b}' % (id, tool, arguments)
            calls[id] = self.assistant(message, block, b'"tool_use"')
            if s.random() < 0.2:
                self.progress(id, calls[id])
        last = self.parent
        for id in s.answers(calls):
            self.parent = self.result(id, calls.get(id, last))
        if s.random() < 0.1:
            hook = b'"data":{"type":"hook_progress","hookEvent":"PostToolUse","command":"lint"},"toolUseID":"%b"'
            self.parent = self.row(self.parent, b"progress", hook % s.uuid())

    def progress(self, id, parent):
        output = self.s.text(2000)
        self.row(
            parent,
            b"progress",
            b'"data":{"type":"bash_progress","output":"%b","fullOutput":"%b","elapsedTimeSeconds":2,"totalLines":15},'
            b'"toolUseID":"bash-progress-0","parentToolUseID":"%b"' % (output[-200:].split(b"\\n", 1)[-1], output, id),
        )

    def result(self, id, parent):
        text, twice = self.s.result(), b""
        if self.s.random() < 0.4:
            twice = b'"toolUseResult":{"stdout":"%b","stderr":"","interrupted":false,"isImage":false},' % text
        return self.row(
            parent,
            b"user",
            b'"message":{"role":"user","content":[{"tool_use_id":"%b","type":"tool_result","content":"%b",'
            b'"is_error":false}]},%b"sourceToolAssistantUUID":%b' % (id, text, twice, parent),
        )

    def end(self):
        self.assistant(self.s.hex(12), b'{"type":"text","text":"%b"}' % self.s.text(400), b'"end_turn"')
        took = b'"subtype":"turn_duration","durationMs":%d,"isMeta":false' % self.s.below(300_000)
        self.parent = self.row(self.parent, b"system", took)


def main(args):
    formats = {"pi": Pi, "claude-code": ClaudeCode}
    if len(args) != 3 or args[0] not in formats:
        sys.exit("usage: python3 benches/generate.py {pi|claude-code} BYTES SEED > FILE")
    wanted, source, written = int(args[1]), Source(int(args[2])), 0

    def out(line):
        nonlocal written
        written += len(line)
        sys.stdout.buffer.write(line)

    session = formats[args[0]](source, out)
    while written < wanted:
        session.user()
        for _ in range(1 + source.below(12)):
            session.step()
            if written >= wanted:
                break
        session.end()


if __name__ == "__main__":
    main(sys.argv[1:])
