# Reads Claude Code's sessions with the vendor's SDK, and does nothing else.
#
#   python3 read_claude.py < PATHS
#
# Of each path, one a line, it writes to PATH.read what claude_agent_sdk.get_session_messages gives, as JSON:
# {"messages": [{"id", "head", "message"}], "extras", "unseen"}, where the extras are each row's toolUseResult by uuid (the
# last row wins, as in the SDK), and unseen is how many rows behind the first are for the model alone, which the SDK leaves
# out; or {"problem"}, if the SDK cannot read the file or finds no conversation in it; is_readers, if Claude Code can.

import json
import os
import sys
import tempfile
from pathlib import Path

from claude_agent_sdk import get_session_messages

STEM = "00000000-0000-4000-8000-000000000000"


def parse(line):
    try:
        return json.loads(line)
    except ValueError:
        return None


def read(path, session):
    data = Path(path).read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"problem": "the SDK cannot read what is not UTF-8"}
    session.write_bytes(data)
    messages = get_session_messages(STEM)
    if not messages:
        return {"problem": "the SDK finds no conversation"}
    rows = [row for row in map(parse, text.split("\n")) if isinstance(row, dict)]
    extras = {row["uuid"]: row.get("toolUseResult") for row in rows if isinstance(row.get("uuid"), str)}
    prompts = [row for row in rows if row.get("type") == "last-prompt" and row.get("leafUuid") in extras]
    if prompts and prompts[-1]["leafUuid"] not in {message.uuid for message in messages}:
        return {"problem": "the last prompt's row names a leaf on another branch, which Claude Code takes and the SDK does not", "is_readers": True}
    spoken = [row for row in rows if row.get("type") in ("user", "assistant") and not row.get("isSidechain")]
    if spoken[-1].get("isMeta") and spoken[-1].get("parentUuid") != messages[-1].uuid:
        return {"problem": "the last row is for the model alone, and the SDK takes another branch for that", "is_readers": True}
    told = [{"id": m.uuid, "head": [m.type, m.session_id], "message": m.message} for m in messages]
    first = next(number for number, row in enumerate(rows) if row.get("uuid") == messages[0].uuid)
    unseen = sum(row.get("isMeta") is True and row.get("type") == "user" for row in rows[first:])
    return {"messages": told, "extras": extras, "unseen": unseen}


with tempfile.TemporaryDirectory(prefix="read-claude-") as home:
    folder = Path(home, "projects", "p")
    folder.mkdir(parents=True)
    os.environ["CLAUDE_CONFIG_DIR"] = home
    for path in sys.stdin.read().splitlines():
        Path(f"{path}.read").write_text(json.dumps(read(path, folder / f"{STEM}.jsonl")))
