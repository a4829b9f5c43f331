"""The table of what is expected, and the page that is made from it.

expected.tsv has a line for each agent, version and case: the result, and, where that is not as it should be, why.
"""

import collections
import datetime
import re

import bot_table
import cases
import damage

Row = collections.namedtuple("Row", "agent version case result reason")
HEAD = "agent\tversion\tcase\tresult\treason"


class Table:
    def __init__(self, path, docs):
        self.path, self.docs = path, docs
        self.read()

    def read(self):
        head, *lines = self.path.read_text().splitlines() if self.path.exists() else [HEAD]
        self.dated = dict(entry.split(" ") for entry in head.removeprefix(HEAD).strip().split(", ") if entry)
        rows = (Row(*(line.split("\t") + [""] * 5)[:5]) for line in lines)
        self.rows = {(row.agent, row.case): row for row in rows}

    def write(self):
        self.rows = dict(sorted(self.rows.items(), key=lambda item: item[0][0]))  # by agent; cases stay in their order
        dated = ", ".join(f"{agent} {date}" for agent, date in sorted(self.dated.items()))
        head = f"{HEAD}\t{dated}".strip()
        self.path.write_text("\n".join([head, *("\t".join(row).rstrip() for row in self.rows.values())]) + "\n")
        self.write_docs()

    def write_docs(self):
        self.docs.write_text(document(self.rows, self.dated))

    def stamp(self, agents):
        """All cases of these agents were run, and ended as expected."""
        self.read()  # another run may have written it since
        self.dated |= dict.fromkeys(agents, datetime.date.today().isoformat())
        self.write()

    def update(self, results, partly):
        """Puts these results in; a reason stays as long as its result does."""
        self.read()  # another run may have written it since
        was = dict(self.rows)
        for agent, version, told in results:
            if not partly:
                self.rows = {key: row for key, row in self.rows.items() if key[0] != agent}
            for case, result, _ in told:
                old = was.get((agent, case))
                self.rows[agent, case] = Row(agent, version, case, result, old.reason if old and old.result == result else "")
        self.write()

    def compare(self, agent, version, told, partly):
        """What is not as expected, a line each."""
        for case, result, detail in told:
            row = self.rows.get((agent, case))
            if row is None:
                yield f"NEW: {agent} {version}, {case}: {result}\n{indented(detail)}"
            elif row.result != result:
                now, was = cases.score(result), cases.score(row.result)
                word = "WORSE" if now < was else "BETTER" if now > was else "DIFFERENT"
                yield f"{word}: {agent} {version}, {case}\n    expected: {row.result}\n    got:      {result}\n{indented(detail)}"
        missing = {case for name, case in self.rows if name == agent} - {case for case, _, _ in told}
        if not partly:
            yield from (f"NOT RUN: {agent} {version}, {case}" for case in sorted(missing))

    def faults(self, versions):
        """What is wrong with the table itself."""
        for row in self.rows.values():
            if versions.get(row.agent, row.version) != row.version:
                yield f"OTHER VERSION: {row.agent}, {row.case} was tried with {row.version}, versions.toml says {versions[row.agent]}"
            if is_defect(row) and not row.reason:
                yield f"NO REASON: {row.agent}, {row.case}: {row.result}"
        if not self.docs.exists() or self.docs.read_text() != document(self.rows, self.dated):
            yield "docs/agents.md is not what expected.tsv says: tests/agents/run --write-docs"


REFUSED = r"refused|nothing sent|worse than|NOT as it was|stuck|broken|lost [1-9]"


def is_defect(row):
    """Whether a result needs a reason. What nobody mended needs none; what was shortened may hold fewer prompts, and what
    was undone is as long as it was."""
    if row.case.removeprefix("bound: ").startswith("raw ") or row.case == "too long":
        return False
    bad = [REFUSED]
    if not re.search("recover|compact", row.case):
        bad.append("accepted [012]/")
    if "undo" not in row.case:
        bad.append(" larger")
    return bool(re.search("|".join(bad), row.result))


def indented(detail):
    return "\n".join(f"      {line[:400]}" for line in detail.strip().splitlines()[-12:])


# --- the page ---

INTRO = """\
# Agents

What real agents do with sessions that Tailor changed. Each agent ran against a model stub on loopback that refuses what the
real APIs refuse. `tests/agents/run TAILOR` runs all of it, and fails when a result changes, also when it gets
better. `tests/agents/expected.tsv` has the results.

A session has three prompts with seven tool calls. A cell says what the API got when a new process of the agent resumed it:
`3/3/7/6` is accepted, with three prompts, three replies, seven calls and six results; *refused* means that the API answered
with an error; *nothing sent*, that the agent did not call it at all. *same* and *smaller* compare the request with that of
the untouched session. Bold results are not as they should be; [the end of this page](#known-defects) says why.
"""


def passed(dated, versions):
    """Which versions were tried, and when."""
    named = lambda agents: ", ".join(f"{agent} {versions.get(agent, '')}".strip() for agent in sorted(agents))
    days = sorted(set(dated.values()), reverse=True)
    told = "; on ".join(f"{day} {named(agent for agent in dated if dated[agent] == day)}" for day in days)
    parts = [f"All cases last ended like this on {told}."] if dated else []
    parts += [f"Not tried whole: {named(versions.keys() - dated.keys())}."] if versions.keys() - dated.keys() else []
    return " ".join(parts) + "\n"


def document(expected, dated):
    agents = list(dict.fromkeys((row.agent, row.version) for row in expected.values()))
    parts = [INTRO, passed(dated, dict(agents))]
    parts.append("## Damaged sessions\n\nBefore the arrow: resumed as damaged. After it: resumed after `tailor fix`. Without an arrow: both.\n")
    parts.append(matrix(expected, agents, {name: (f"raw {name}", f"fix {name}") for name in damage.DAMAGES}))
    parts.append(LEGEND)
    trims = [f"fix {name}" for name in cases.TRIMS] + ["recover 1", "recover 2", "recover 3", "compact", "undo"]
    parts.append("## Trimmed sessions\n\n`fix NAME` is `tailor fix` with that profile. After `undo` the file was as before, byte for byte, unless the cell says so.\n")
    parts.append(matrix(expected, agents, {name: (name,) for name in ["untouched", *trims]}))
    parts.append("## Too long for the window\n")
    parts.append(matrix(expected, agents, {name: (name,) for name in ("too long", "too long, recover")}))
    parts.append("## Thinking that is bound to what comes before it\n\n`strip` is `tailor fix --thinking strip`.\n")
    bound = [case for _, case in expected if case.startswith("bound: ")]
    parts.append(matrix(expected, [a for a in agents if (a[0], "bound: untouched") in expected], {c.removeprefix("bound: "): (c,) for c in bound}))
    parts.append("## Beside the running agent\n\n`tailor watch --mode enforce`, then resumed by a new process. Unless a cell says so, no line was lost.\n")
    live = dict.fromkeys(case for _, case in expected if case.startswith("live"))
    parts.append(matrix(expected, agents, {c: (c,) for c in live}))
    parts += bot_table.Table().page()
    parts.append("## Known defects\n")
    parts += defects(row for row in expected.values() if row.reason)
    return "\n".join(parts) + "\n"


def defects(rows):
    """A line for each reason, with the cases of the agent that have it."""
    cases_of = collections.defaultdict(list)
    for row in rows:
        cases_of[row.agent, row.reason].append(row.case)
    return [f"- {agent}, {', '.join(names)}: {reason}" for (agent, reason), names in cases_of.items()]


LEGEND = """
- *lost*: the line of a result is missing; *cutcall*: the line of a call is missing
- *torn*: the last line is cut off; *tornappend*: a line further up is cut off, and the next one is appended to it
- *dup*: a result is there twice; *glue*: a result is cut off, and the next line is glued to it
- *nul*, *nulmid*: 4 kB of NUL bytes at the end, or as a line of their own
- *pending*: the agent died while tools ran; *key*: one byte of a name in a result is overwritten
"""


def matrix(expected, agents, columns):
    """A table: agents with the same results share a row, a column shows one or more cases. Columns of nobody are left out."""
    columns = {name: keys for name, keys in dict(columns).items() if any((a, k) in expected for a, _ in agents for k in keys)}
    rows = collections.defaultdict(list)
    for agent, _ in agents:
        cells = []
        for keys in columns.values():
            found = [expected[agent, key] for key in keys if (agent, key) in expected]
            cells.append(" → ".join(dict.fromkeys(short(row) for row in found)) or "–")
        rows[tuple(cells)].append(agent)
    lines = [f"| agent | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in rows.items() if set(cells) != {"–"}]
    return "\n".join(lines) + "\n"


def short(row):
    said = re.sub(r"^lost 0, |^cut, as it was, |accepted (?=\d)", "", re.sub(r"refused: [^,]*", "refused", row.result))
    said = "same" if said == "3/3/7/7 same" else said
    return f"**{said}**" if row.reason else said
