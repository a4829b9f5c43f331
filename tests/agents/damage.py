"""What happens to transcripts: each function takes the bytes of a session and an agent and gives them back damaged.

The session has three prompts; what is damaged belongs to the second or the third, so that there is something before it.
"""

import re

NULS = b"\0" * 4096
KEYS = ("parentUuid", "parentId", "toolCallId", "tool_use_id", "call_id", "tool_call_id", "role", "type")


class NotHere(Exception):
    """The session has no such line."""


def find(lines, pattern, mark, last=False):
    """The number of the line that has the mark and is of this kind."""
    wanted = re.compile(pattern.encode())
    found = [n for n, line in enumerate(lines) if mark in line and wanted.search(line)]
    if not found:
        raise NotHere(f"no line has {pattern} and {mark.decode()}")
    return found[-1 if last else 0]


def result_at(lines, agent, tag=b"2-1-1"):
    return find(lines, agent.result_line, b"result-" + tag, agent.last_wins)


def call_at(lines, agent, tag=b"2-1-1"):
    return find(lines, agent.call_line, b"call-" + tag, agent.last_wins)


def lost(lines, agent):
    del lines[result_at(lines, agent)]


def torn(lines, agent):
    lines[-1] = lines[-1][: len(lines[-1]) // 2]


def dup(lines, agent):
    at = result_at(lines, agent)
    lines.insert(at, lines[at])


def cutcall(lines, agent):
    del lines[call_at(lines, agent)]


def glue(lines, agent):
    at = result_at(lines, agent)
    lines[at] = lines[at][: len(lines[at]) * 6 // 10]


def nul(lines, agent):
    lines.append(NULS)


def nulmid(lines, agent):
    lines.insert(call_at(lines, agent) + 1, NULS + b"\n")


def pending(lines, agent):
    """The process died while the tools of the last prompt ran."""
    calls = [n for n, line in enumerate(lines) if b"call-3-1-" in line and re.search(agent.call_line.encode(), line)]
    if not calls:
        raise NotHere("no call of the last prompt")
    del lines[(calls[-1] if not agent.last_wins else calls[0]) + 1 :]


def tornappend(lines, agent):
    """The process died in the middle of a line, and the next one appended to what was there."""
    at = call_at(lines, agent, b"3-1-1")
    lines[at] = lines[at][: len(lines[at]) // 2]


def key(lines, agent):
    """One byte of a name is another one."""
    at = result_at(lines, agent)
    for name in KEYS:
        where = lines[at].find(f'"{name}":'.encode())
        if where >= 0:
            lines[at] = lines[at][: where + 3] + b"\xff" + lines[at][where + 4 :]
            return
    raise NotHere("no name to damage")


DAMAGES = {d.__name__: d for d in (lost, torn, dup, cutcall, glue, nul, nulmid, pending, tornappend, key)}
QUICK = ("lost", "torn", "dup", "glue", "pending", "tornappend")


def damaged(data, agent, name):
    lines = data.splitlines(keepends=True) if b"\r" not in data else re.findall(rb"[^\n]*\n|[^\n]+", data)
    DAMAGES[name](lines, agent)
    return b"".join(lines)
