"""The table of lives, bot.tsv: what came of each run, its part of docs/agents.md, and a chart of OpenClaw's."""

import datetime
import fcntl
import statistics
from pathlib import Path

HERE = Path(__file__).resolve().parent
COLUMNS = (
    "agent", "window", "way", "version", "date", "outcome", "answered", "turns", "first", "restarts", "refused", "largest_kb", "store_kb",
    "latency_s", "fixes", "deferred", "lost", "locked", "doctor", "undo", "what", "requests_kb", "stores_kb",
)  # fmt: skip
UNDONE = {"whole": "✓", "nothing to undo": "–"}
RANKS = ("dead", "alive after a restart", "alive")
DEAD_STATES = ("dead", "too long", "broken")
UNANSWERED = "x"


def row(agent, version, window, way, life):
    """The row of a life that has ended."""
    turns = [turn for turn in life.turns if 0 < turn["turn"] <= len(life.setup.plan)]
    missed = [turn["turn"] for turn in turns if not turn["answered"]]
    answered = sum(turn["answered"] for turn in turns)
    all_answered = answered == len(life.setup.plan)
    did = life.daemon.events if life.daemon else {}
    count = lambda word: sum(times for what, times in did.items() if what.startswith(word))
    values = {
        "agent": agent, "version": version, "window": window, "way": way, "date": datetime.date.today().isoformat(),
        "outcome": "dead" if not life.revived else "alive" if all_answered else "alive after a restart",
        "answered": answered, "turns": len(life.setup.plan), "first": missed[0] if missed else "", "restarts": life.restarts,
        "refused": sum(life.refusals.values()),
        "largest_kb": max((turn["request_bytes"] for turn in life.turns if turn["turn"]), default=0) // 1000,
        "store_kb": life.turns[-1].get("store_bytes", 0) // 1000 if life.turns else 0,
        "latency_s": round(statistics.median([turn["seconds"] for turn in turns if turn["answered"]] or [0]), 1),
        "fixes": count("fixed") + count("recovered"), "deferred": count("deferred"), "lost": len(life.lost), "locked": life.locked,
        "doctor": life.doctor, "undo": life.undone,
        "what": "; ".join(f"{times} x {what}" for what, times in sorted(did.items(), key=lambda item: -item[1]) if what != "clean")[:300],
        "requests_kb": " ".join(str(turn["request_bytes"] // 1000) if turn["answered"] else UNANSWERED for turn in turns),
        "stores_kb": " ".join(str(turn["store_bytes"] // 1000) for turn in turns),
    }  # fmt: skip
    return {name: str(values[name]).replace("\t", " ").replace("\n", " ") for name in COLUMNS}


def words(row):
    """A row in a line."""
    parts = [row["outcome"], f"{row['answered']} of {row['turns']} answered"]
    if row["first"]:
        parts.append(f"first not at turn {row['first']}")
    parts += [f"largest request {row['largest_kb']} KB", f"store {row['store_kb']} KB", f"lost {row['lost']}", f"doctor: {row['doctor']}"]
    if row["way"] == "beside":
        parts += [f"{row['fixes']} fixes, {row['deferred']} deferred", f"undo: {row['undo']}"]
    return ", ".join(parts)


def fate_compared(row):
    """What must be as expected. In the short runs, which each change makes on a machine that may be busy, an agent may be refused
    once because the daemon had no time to look before the next prompt: there it counts only whether it is dead."""
    return row["outcome"] == "dead" if row["window"] == "quick" else row["outcome"]


def faults(row):
    """What may not be, whatever is expected."""
    if row["lost"] != "0":
        yield f"{row['lost']} prompts, replies or calls are not in the store"
    if row["locked"] != "0":
        yield f"the owner found its database locked {row['locked']} times"
    if row["way"] == "beside" and ((row["doctor"] in DEAD_STATES) != (row["outcome"] == "dead") or row["doctor"] == "dying"):
        yield f"it is {row['outcome']}, and doctor says {row['doctor']}"
    if row["way"] == "beside" and row["undo"] not in ("whole", "nothing to undo"):
        yield f"undo: {row['undo']}"


class Table:
    def __init__(self, path=HERE / "bot.tsv"):
        self.path = path
        self.read()

    def read(self):
        lines = self.path.read_text().splitlines()[1:] if self.path.exists() else []
        found = (dict(zip(COLUMNS, line.split("\t") + [""] * len(COLUMNS))) for line in lines)
        self.rows = {(row["agent"], row["window"], row["way"]): row for row in found}

    def put(self, row):
        with Path(__file__).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another run may write the table too
            self.read()
            self.rows[row["agent"], row["window"], row["way"]] = row
            lines = ["\t".join(COLUMNS), *("\t".join(self.rows[key][name] for name in COLUMNS) for key in sorted(self.rows))]
            self.path.write_text("\n".join(lines) + "\n")

    def compare(self, row):
        """What is not as expected, a line each."""
        named = f"{row['agent']} {row['version']}, {row['window']}, {row['way']}"
        expected = self.rows.get((row["agent"], row["window"], row["way"]))
        if expected is None:
            yield f"NEW: {named}: {words(row)}"
        elif fate_compared(expected) != fate_compared(row):
            worse = RANKS.index(row["outcome"]) < RANKS.index(expected["outcome"])
            yield f"{'WORSE' if worse else 'BETTER'}: {named}\n    expected: {words(expected)}\n    got:      {words(row)}"
        yield from (f"WRONG: {named}: {fault}" for fault in faults(row))

    def pairs(self, quick=False):
        """[(agent, window, row alone or None, row beside the daemon or None)], in the order of the file."""
        keys = dict.fromkeys((agent, window) for agent, window, _ in self.rows if (window == "quick") == quick)
        return [(*key, self.rows.get((*key, "alone")), self.rows.get((*key, "beside"))) for key in keys]

    # --- the page ---

    def page(self):
        """The part of docs/agents.md."""
        lives = self.pairs()
        if not lives:
            return []
        dates = sorted({row["date"] for row in self.rows.values()})
        parts = [LIVES.format(dates=" and ".join(dict.fromkeys((dates[0], dates[-1]))))]
        if all(self.charted()):
            parts.append(PICTURE)
        parts.append(listing(lives))
        return parts

    # --- the chart ---

    def draw(self, path):
        """OpenClaw's requests, turn by turn, alone and beside the daemon."""
        if all(self.charted()):
            path.write_text("\n".join(chart(self.charted())) + "\n")

    def charted(self):
        found = {window: rows for agent, window, *rows in self.pairs() if agent == "openclaw"}
        return [(window, *found[window]) if all(found.get(window, [None])) else None for window in PANELS]


LIVES = """\
## Many turns with long results

Each agent was given prompts with two tool calls of 400,000 characters each, which it cuts to its own limit (Claude Code, Copilot CLI, Kimi
Code and Qwen Code: as many as they keep whole); one turn has twelve batches of them. It was restarted with a pause of ten seconds after half
of the turns and whenever it had left two prompts unanswered; at the end another process resumed the session.

A cell says how many prompts were answered. An *own* window: the agent knows the API's window of 200,000 tokens and shortens its context itself;
*none*: it does not; *schema*: every third of 35 prompts reads OpenClaw's own configuration schema of 396 KB. *Alone* is without Tailor,
*daemon* beside `tailor watch --mode=enforce`. *Dead* means that from this turn on no process of the agent got an answer; the store is that of
the last turn before. `tests/agents/bot TAILOR` runs all of it ({dates}).
"""

PICTURE = "![requests of OpenClaw, turn by turn](pictures/openclaw.svg)\n"

COLUMNS_SHOWN = ("agent", "window", "alone", "daemon", "largest request, KB", "store then, KB", "fixes", "undo", "`doctor`")


def listing(pairs):
    lines, last = [f"| {' | '.join(COLUMNS_SHOWN)} |", "|---" * len(COLUMNS_SHOWN) + "|"], None
    for agent, window, alone, beside in pairs:
        both = [row for row in (alone, beside) if row]
        did = [beside["fixes"], UNDONE.get(beside["undo"], beside["undo"])] if beside else ["–"] * 2
        cells = (
            agent if agent == last else f"{agent} {both[0]['version']}", window, lived(alone), lived(beside),
            arrow(row["largest_kb"] for row in both), arrow(str(stores_of(row)[last_turn(alone)]) for row in both), *did,
            arrow(row["doctor"] for row in both),
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
        last = agent
    return "\n".join(lines) + "\n"


def stores_of(row):
    return [int(kb) for kb in row["stores_kb"].split()]


def last_turn(alone):
    """The last turn to which the agent lived without Tailor, as an index."""
    return int(alone["first"]) - 2 if alone and alone["outcome"] == "dead" else -1


def lived(row):
    if row is None:
        return "–"
    return f"**dead at {row['first']}**" if row["outcome"] == "dead" else f"{row['answered']}/{row['turns']}"


def arrow(values):
    return " → ".join(dict.fromkeys(f"{int(value):,}" if value.isdigit() else value for value in values))


PANELS = {"200k": "a window of 200,000 tokens", "1M": "a window of 1,000,000 tokens"}
PANEL_WIDTH, PANEL_HEIGHT, MARGIN, HEAD = 400, 190, 52, 66
LINES = (("alone", "#cf222e"), ("beside", "#1a7f37"))


def points(row):
    """[(turn, KB of the request)] of the turns that were answered."""
    return [(turn, int(kb)) for turn, kb in enumerate(row["requests_kb"].split(), 1) if kb != UNANSWERED]


def chart(pairs):
    width, height = len(pairs) * (PANEL_WIDTH + MARGIN) + MARGIN // 2, HEAD + PANEL_HEIGHT + 66
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    yield "<title>Requests of OpenClaw, turn by turn, without Tailor and beside its daemon</title>"
    yield f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff" stroke="#d0d7de"/>'
    yield '<g font-family="system-ui, -apple-system, \'Segoe UI\', Helvetica, Arial, sans-serif" font-size="13" fill="#1f2328">'
    yield f'<text x="{MARGIN}" y="26" font-size="15" font-weight="600">OpenClaw {pairs[0][1]["version"]}: MB of each request, two long tool results a turn</text>'
    for n, (window, alone, beside) in enumerate(pairs):
        yield from panel(MARGIN + n * (PANEL_WIDTH + MARGIN), window, {"alone": alone, "beside": beside})
    yield "</g>"
    yield "</svg>"


def panel(left, window, rows):
    turns = int(rows["beside"]["turns"])
    top_kb = max(kb for row in rows.values() for _, kb in points(row)) * 1.15
    x = lambda turn: round(left + PANEL_WIDTH * turn / turns, 1)
    y = lambda kb: round(HEAD + PANEL_HEIGHT * (1 - kb / top_kb), 1)
    yield f'<text x="{left}" y="{HEAD - 12}">{PANELS[window]}</text>'
    for part in (0, 0.5, 1):
        kb = top_kb * part / 1.15
        yield f'<line x1="{left}" y1="{y(kb)}" x2="{left + PANEL_WIDTH}" y2="{y(kb)}" stroke="#d0d7de"/>'
        yield f'<text x="{left - 6}" y="{y(kb) + 4}" text-anchor="end" font-size="11">{kb / 1000:.1f}</text>'
    for turn in range(0, turns + 1, 10):
        yield f'<text x="{x(turn)}" y="{HEAD + PANEL_HEIGHT + 16}" text-anchor="middle" font-size="11">{turn}</text>'
    for n, (way, colour) in enumerate(LINES):
        path = " ".join(f"{x(turn)},{y(kb)}" for turn, kb in points(rows[way]))
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
        last_turn, last_kb = points(rows[way])[-1]
        mark = "✕" if rows[way]["outcome"] == "dead" else "●"
        yield f'<text x="{x(last_turn)}" y="{y(last_kb) + 5}" text-anchor="middle" fill="{colour}" font-weight="700">{mark}</text>'
        yield f'<text x="{left}" y="{HEAD + PANEL_HEIGHT + 36 + n * 19}" fill="{colour}" font-weight="600">{fate(way, rows[way])}</text>'


def fate(way, row):
    whose = "without Tailor" if way == "alone" else "beside the daemon"
    if row["outcome"] == "dead":
        return f"{whose}: dead at turn {row['first']}"
    return f"{whose}: {row['answered']} of {row['turns']} answered"
