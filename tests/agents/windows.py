"""How each agent of `bot` is set up, for each window that it is tried with.

`own`: it knows the window of the API, and shortens its context by itself. `none`: it does not, because that is switched off or
because it believes in a larger window; the API refuses what is over 200,000 tokens all the same.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "stores"))

import agents  # noqa: E402
import owners  # noqa: E402

API_TOKENS = 200_000
FAR_TOKENS = 5_000_000  # no run gets there
RESULT_CHARS = 400_000


def turns(count, twelve_at=30, chars=None):
    """The orders of each turn: two long results, and once twelve batches of them, or of results with so many characters."""
    batches = {"calls": 2, "rounds": 12, **({"chars": chars} if chars else {})}
    return [batches if turn == twelve_at else {"calls": 2} for turn in range(1, count + 1)]


class Setup:
    """One agent with one window. `edit` changes its configuration; `plan` has the orders of each turn; its results have `chars`,
    which an agent that puts longer ones into files of their own keeps whole."""

    def __init__(self, driver, edit=None, api_tokens=API_TOKENS, env=None, plan=None):
        self.driver, self.edit, self.api_tokens, self.env, self.plan = driver, edit, api_tokens, env or {}, plan or turns(42)
        self.chars = driver.chars if driver in (agents.Claude, agents.Copilot, agents.Kimi, agents.Qwen) else RESULT_CHARS

    def agent(self, install, folder, stub):
        agent = self.driver(install, folder, stub)
        agent.more_env = self.env
        if self.edit:
            self.edit(agent)
        return agent


def json_file(name, change):
    """An edit: `change` is called with what the file of this name holds."""

    def edit(agent):
        held = json.loads((agent.home / name).read_text())
        change(held, agent)
        agent.put(name, held)

    return edit


def text_file(name, before="", replace=None):
    """An edit: lines before all others, and texts instead of others."""

    def edit(agent):
        held = (agent.home / name).read_text()
        for old, new in (replace or {}).items():
            if old not in held:
                raise agents.Stuck(f"{name} has no {old}")
            held = held.replace(old, new)
        agent.put(name, before + held)

    return edit


def models(name, tokens):
    """An edit of pi's or OpenClaw's list of models."""

    def change(held, _):
        providers = held.get("providers") or held["models"]["providers"]
        providers["stub"]["models"][0]["contextWindow"] = tokens

    return json_file(name, change)


def pi(compacts):
    def edit(agent):
        models(".pi/agent/models.json", API_TOKENS)(agent)
        if not compacts:
            json_file(".pi/agent/settings.json", lambda held, _: held.update(compaction={"enabled": False}))(agent)

    return edit


def opencode(compacts, tokens=API_TOKENS):
    def change(held, agent):
        held["provider"]["stub"]["models"][agent.model]["limit"]["context"] = tokens
        if compacts:
            del held["compaction"]

    return json_file(".config/opencode/opencode.json", change)


def gemini(share):
    return json_file(".gemini/settings.json", lambda held, _: held["model"].update(compressionThreshold=share))


def qwen(tokens):
    return json_file(".qwen/settings.json", lambda held, _: held.update(model={"generationConfig": {"contextWindowSize": tokens}}))


def kimi(tokens):
    return text_file(".kimi-code/config.toml", replace={"max_context_size = 1000000": f"max_context_size = {tokens}"})


def openclaw(tokens):
    return models(".openclaw/openclaw.json", tokens)


def openclaw_schema(agent):
    """OpenClaw, which has printed the schema of its configuration into a file."""
    openclaw(200_000)(agent)
    code, said = agent.run("config", "schema")
    if code or len(said) < SCHEMA_CHARS:
        raise agents.Stuck(f"openclaw config schema: {said[-300:]}")
    agent.put("schema.json", said[said.index("{") :])


SCHEMA_CHARS = 396_000
READ_SCHEMA = {"calls": 1, "print": f"head -c {SCHEMA_CHARS} $HOME/schema.json"}
CODEX = ".codex/config.toml"
VIBE = text_file(".vibe/config.toml", replace={"auto_compact_threshold = 10000000": "auto_compact_threshold = 150000"})
LONG_OUTPUT = {f"{name}_BASH_MAX_OUTPUT_CHARS": "2000000" for name in ("PI", "OPENCLAW")}
COPILOT = "COPILOT_PROVIDER_MAX_PROMPT_TOKENS"
OPENCLAW = {"driver": owners.OpenClaw, "env": LONG_OUTPUT}

SHORT = turns(30, 20)  # where no agent dies
# Nobody shortens these while a turn lasts, and a turn that is longer than the window cannot be answered.
FITS = 6_000
SETUPS = {
    ("openclaw", "200k"): Setup(edit=openclaw(200_000), api_tokens=200_000, plan=turns(60, chars=FITS), **OPENCLAW),
    ("openclaw", "1M"): Setup(edit=openclaw(1_000_000), api_tokens=1_000_000, plan=turns(60), **OPENCLAW),
    ("openclaw", "schema"): Setup(
        edit=openclaw_schema, plan=[READ_SCHEMA if turn % 3 == 1 else {"calls": 0} for turn in range(1, 36)], **OPENCLAW
    ),
    ("opencode", "own"): Setup(owners.OpenCode, opencode(True), plan=turns(60)),
    ("opencode", "none"): Setup(owners.OpenCode, opencode(False), plan=turns(60, chars=FITS)),
    ("claude", "own"): Setup(agents.Claude, plan=SHORT),
    ("claude", "none"): Setup(agents.Claude, env={"DISABLE_AUTO_COMPACT": "1"}, plan=turns(42, chars=FITS)),
    ("codex", "own"): Setup(agents.Codex, text_file(CODEX, f"model_context_window = {API_TOKENS}\n"), plan=SHORT),
    ("codex", "none"): Setup(agents.Codex, text_file(CODEX, f"model_auto_compact_token_limit = {FAR_TOKENS}\n"), plan=turns(42, chars=FITS)),
    ("pi", "own"): Setup(agents.Pi, pi(True), plan=SHORT),
    ("pi", "none"): Setup(agents.Pi, pi(False), plan=turns(42, chars=FITS)),
    # It always believes in 1M, and sends results whole until it masks them: its file grows by the square.
    ("gemini", "own"): Setup(agents.Gemini, gemini(0.15), api_tokens=1_000_000, plan=turns(14, 12)),
    ("gemini", "none"): Setup(agents.Gemini, gemini(5), api_tokens=FAR_TOKENS, plan=turns(14, 12)),
    ("qwen", "own"): Setup(agents.Qwen, qwen(API_TOKENS), plan=SHORT),
    ("qwen", "none"): Setup(agents.Qwen, qwen(FAR_TOKENS), plan=SHORT),
    ("copilot", "own"): Setup(agents.Copilot, env={COPILOT: "128000"}, plan=SHORT),
    ("copilot", "none"): Setup(agents.Copilot, env={COPILOT: str(FAR_TOKENS)}, plan=SHORT),
    ("kimi", "own"): Setup(agents.Kimi, kimi(API_TOKENS), plan=SHORT),
    ("kimi", "none"): Setup(agents.Kimi, kimi(FAR_TOKENS), plan=SHORT),
    ("vibe", "own"): Setup(agents.Vibe, VIBE, plan=SHORT),
    ("vibe", "none"): Setup(agents.Vibe, plan=turns(42, chars=FITS)),
}

QUICK = {
    ("openclaw", "quick"): Setup(edit=openclaw(200_000), plan=[{"calls": 1, "rounds": 6}, *turns(3)], **OPENCLAW),
    ("opencode", "quick"): Setup(owners.OpenCode, opencode(False, 160_000), api_tokens=160_000, plan=turns(10)),
}
