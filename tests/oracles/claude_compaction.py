# Asks the vendor's SDK what a Claude Code session holds after `tailor recover --level 2` or `tailor compact`.
#
#   python3 claude_compaction.py BEFORE AFTER REPORT
#
# BEFORE is a session in which nothing is left to mend. The conversation of AFTER must be our summary and the last rows
# of BEFORE, but for rows of thinking that were taken out. Exit 0: so it is. 1: it is not. 77: skipped.

import json
import sys
from pathlib import Path

from claude_sequence import THINKING, load


def end(code, text):
    print(text)
    sys.exit(code)


def blocks(message):
    content = message.get("content") if isinstance(message, dict) else None
    return [b for b in content if b.get("type") not in THINKING] if isinstance(content, list) else content


def text_of(content):
    return content if isinstance(content, str) else "".join(b.get("text", "") for b in content or [])


report = json.loads(Path(sys.argv[3]).read_text() or "{}")
if report.get("outcome") != "fixed" or not report.get("left_out"):
    end(77, f"skipped: {report.get('outcome')} {report.get('reason', '')}")
try:
    before, _ = load(Path(sys.argv[1]).read_text(encoding="utf-8"))
except UnicodeDecodeError as error:
    end(77, f"skipped: the SDK cannot read BEFORE: {error}")
after, _ = load(Path(sys.argv[2]).read_text(encoding="utf-8"))
if not after:
    end(1, "FAILED: the SDK finds no conversation")
first, *kept = after
if not text_of(blocks(first.message)).startswith("[tailor: "):
    end(1, f"FAILED: the conversation begins with {first.uuid}, not with the summary")
rows = lambda messages: [(m.uuid, blocks(m.message)) for m in messages if blocks(m.message) != []]
said, says = rows(before), rows(kept)
if not says:
    end(1, "FAILED: nothing stays")
if says != said[-len(says) :]:
    wrong = next(i for i, (a, b) in enumerate(zip(says, said[-len(says) :])) if a != b)
    end(1, f"FAILED: row {wrong} is {says[wrong][0]} and was {said[-len(says):][wrong][0]}")
if len(says) >= len(said):
    end(1, "FAILED: nothing is left out")
end(0, f"ok summary and {len(says)} rows, {len(said) - len(says)} left out")
