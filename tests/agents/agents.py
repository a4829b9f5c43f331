"""How each agent is set up, driven and resumed. An `Agent` has a home of its own and speaks to one stub.

`once` runs one prompt in a process of its own; `live` starts one process for many prompts. Everything that would leave
the machine (telemetry, updates, remote features) is switched off, and proxies point nowhere.
"""

import contextlib
import json
import os
import queue
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DEAF = "http://127.0.0.1:9"  # a proxy that nobody answers
KEY = "not-a-real-key"
TURN_SECONDS = 150
END_SECONDS = 10


class Stuck(Exception):
    """The agent did not do what it was asked to."""


class Agent:
    """One agent in a home of its own. Subclasses say how it is configured, called and read."""

    transcripts = ()  # globs below the home
    roots = ()  # what the daemon is to watch, below the home
    result_line = call_line = ""  # patterns of the lines that hold a result or a call
    last_wins = False  # of lines with the same call, the last one counts
    aged = False  # changed only once nobody can hold it open: its time is set back
    chars = 46_000  # of output of a command; the agent keeps that much
    api = "anthropic"
    model = "claude-sonnet-4-5"
    settings = {}  # of its stub
    compacts = False  # has a command that compacts
    whole_turns = 24  # after more of them it compacts by itself
    keeps_thinking = False  # sends signed thinking back
    reads = False  # has a tool that reads a file, which S24 knows
    slow = False  # takes so long to start that fewer cases are tried
    integration = None  # how to install what integrations/ has for it: the words of the command
    only_read = False  # no line of its sessions is added or taken out
    head = None  # variables with which it writes a side file of offsets into a long session
    more_env = {}
    same_program = False  # as another agent: only how it is driven is tried

    def __init__(self, install, base, stub, model=None):
        self.install, self.stub = Path(install), stub
        self.home, self.work = Path(base) / "home", Path(base) / "work"
        self.model = model or self.model
        self.home.mkdir(parents=True, exist_ok=True)
        self.work.mkdir(exist_ok=True)
        (self.home / "tmp").mkdir(exist_ok=True)
        self.configure()

    def configure(self):
        pass

    def trust(self):
        """Does what a person has to do after installing the integration."""

    def extra_env(self):
        return {}

    def env(self):
        node = os.environ.get("AGENTS_NODE", "")
        path = [str(self.home / "bin"), str(self.install / "node_modules/.bin"), str(self.install / "bin"), node, "/usr/local/bin", "/usr/bin", "/bin"]
        return {
            "PATH": ":".join(filter(None, path)), "HOME": str(self.home), "TMPDIR": str(self.home / "tmp"), "LANG": "C.UTF-8",
            "TERM": "dumb", "CI": "1", "NO_COLOR": "1", "DO_NOT_TRACK": "1",
            "NODE_COMPILE_CACHE": str(self.install / "compiled"),
            "HTTP_PROXY": DEAF, "HTTPS_PROXY": DEAF, "http_proxy": DEAF, "https_proxy": DEAF,
            "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost",
            **self.extra_env(), **self.more_env,
        }  # fmt: skip

    def put(self, path, text):
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if isinstance(text, str) else json.dumps(text, indent=1))

    def start(self, argv, **pipes):
        """A process in a group of its own, so that all of it can be ended."""
        return subprocess.Popen(argv, cwd=self.work, env=self.env(), start_new_session=True, **pipes)

    def once(self, prompt, resume, timeout=TURN_SECONDS):
        """Runs one prompt; what the program printed last."""
        process = self.start(self.argv(prompt, resume), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            out, _ = process.communicate(timeout=timeout)
            return out.decode("utf-8", "replace")[-2000:]
        except subprocess.TimeoutExpired:
            return f"no end after {timeout} s"
        finally:
            end_group(process)

    def session(self):
        """The transcript: the file of these names that was written last and holds a prompt."""
        found = [file for pattern in self.transcripts for file in self.home.glob(pattern) if file.is_file()]
        found = [file for file in found if b"prompt-" in file.read_bytes()]
        if not found:
            raise Stuck("no transcript was written")
        return max(found, key=lambda file: file.stat().st_mtime_ns)

    @contextlib.contextmanager
    def live(self, resume=False):
        wire = self.open_wire(resume)
        try:
            yield wire
        finally:
            wire.close()


def end_group(process):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)


class Wire:
    """A process that takes and gives a JSON object a line."""

    def __init__(self, agent, argv):
        self.agent = agent
        self.errors = (agent.home / "stderr.log").open("ab")
        self.heard = []  # all lines, as they came
        self.process = agent.start(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        self.lines = queue.Queue()
        self.last = None
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.heard.append(line.decode("utf-8", "replace"))
            with contextlib.suppress(ValueError):
                self.lines.put(json.loads(line))
        self.lines.put(None)

    def send(self, value):
        try:
            self.process.stdin.write(json.dumps(value).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise Stuck("the process has ended") from None

    def until(self, wanted, timeout=TURN_SECONDS):
        end = time.monotonic() + timeout
        while True:
            try:
                value = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise Stuck(f"no answer in {timeout} s; last: {str(self.last)[:300]}") from None
            if value is None:
                raise Stuck(f"the process has ended; last: {str(self.last)[:300]}")
            self.last = value
            self.react(value)
            if isinstance(value, dict) and wanted(value):
                return value

    def react(self, value):
        pass

    def close(self):
        with contextlib.suppress(OSError, Stuck):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
        end_group(self.process)
        self.errors.close()


class PiWire(Wire):
    def say(self, text):
        self.send({"type": "prompt", "message": text})
        self.until(lambda v: v.get("type") == "agent_end" and not v.get("willRetry"))

    def compact(self):
        self.send({"type": "compact", "id": "c"})
        answer = self.until(lambda v: v.get("type") == "response" and v.get("command") == "compact")
        if not answer.get("success"):
            raise Stuck(f"compaction: {answer.get('error')}")

    def leave(self):
        """Ends the session and begins another one."""
        self.send({"type": "new_session", "id": "n"})
        self.until(lambda v: v.get("type") == "response" and v.get("command") == "new_session")


class StreamJson(Wire):
    def say(self, text):
        self.send({"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None, "session_id": ""})
        self.until(lambda v: v.get("type") == "result")

    def compact(self):
        self.say("/compact")

    def leave(self):
        self.say("/clear")


class JsonRpc(Wire):
    """ACP and Codex's app server: requests with ids, and requests of the other side that we allow."""

    number = 0

    def call(self, method, params, timeout=TURN_SECONDS):
        self.number += 1
        id = self.number
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        answer = self.until(lambda v: v.get("id") == id and ("result" in v or "error" in v), timeout)
        if "error" in answer:
            raise Stuck(f"{method}: {str(answer['error'])[:300]}")
        return answer["result"]

    def react(self, value):
        if not isinstance(value, dict) or "method" not in value or "id" not in value:
            return
        options = (value.get("params") or {}).get("options") or []
        chosen = next((o["optionId"] for o in options if o.get("kind", "").startswith("allow")), None)
        outcome = {"outcome": "selected", "optionId": chosen} if chosen else {"outcome": "cancelled"}
        self.send({"jsonrpc": "2.0", "id": value["id"], "result": {"outcome": outcome, "decision": "accept"}})


class Acp(JsonRpc):
    def open(self, session=None):
        able = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        self.call("initialize", {"protocolVersion": 1, "clientCapabilities": able, "clientInfo": {"name": "stub", "version": "1"}})
        where = {"cwd": str(self.agent.work), "mcpServers": []}
        if isinstance(session, str):
            self.call("session/load", {"sessionId": session, **where})
        self.session = session if isinstance(session, str) else self.call("session/new", where)["sessionId"]
        return self

    def say(self, text):
        self.call("session/prompt", {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]})


class Prompted:
    """A process for each prompt, where an agent resumes only like that."""

    session = True

    def __init__(self, agent):
        self.agent = agent

    def say(self, text):
        said = self.agent.once(text, self.session)
        if "reply-" not in said:
            raise Stuck(f"it printed {said[-300:]}")

    def close(self):
        pass


class CodexWire(JsonRpc):
    def greet(self):
        self.call("initialize", {"clientInfo": {"name": "stub", "title": "stub", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "initialized"})

    def open(self, resume):
        self.greet()
        if resume:
            self.thread = re.search(r"[0-9a-f]{8}(-[0-9a-f]+){4}(?=\.jsonl$)", self.agent.session().name)[0]
            self.call("thread/resume", {"threadId": self.thread, "excludeTurns": True})
        else:
            self.thread = self.call("thread/start", {"cwd": str(self.agent.work)})["thread"]["id"]
        return self

    def say(self, text):
        self.call("turn/start", {"threadId": self.thread, "input": [{"type": "text", "text": text, "text_elements": []}]})
        self.until(lambda v: v.get("method") == "turn/completed")

    def compact(self):
        self.call("thread/compact/start", {"threadId": self.thread})
        self.until(lambda v: v.get("method") == "turn/completed")


# --- the agents ---


class Pi(Agent):
    reads = True
    transcripts = (".pi/agent/sessions/*/*.jsonl",)
    roots = (".pi/agent/sessions",)
    result_line, call_line = r'"role":"toolResult"', r'"type":"toolCall"'
    integration = ("pi", "install", str(ROOT / "integrations/pi"))
    compacts = keeps_thinking = True

    def configure(self):
        model = {
            "id": self.model, "name": "stub", "reasoning": True, "input": ["text", "image"], "contextWindow": 1_000_000, "maxTokens": 8192,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        }  # fmt: skip
        provider = {"baseUrl": self.stub.url, "api": "anthropic-messages", "apiKey": KEY, "models": [model]}
        self.put(".pi/agent/models.json", {"providers": {"stub": provider}})
        self.put(".pi/agent/settings.json", {"compaction": {"keepRecentTokens": 20_000}, "retry": {"enabled": False}})

    def extra_env(self):
        return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}

    def chosen(self):
        return ["--provider", "stub", "--model", self.model]

    def argv(self, prompt, resume):
        return ["pi", *self.chosen(), *(["-c"] if resume else []), "-p", prompt]

    def open_wire(self, resume):
        return PiWire(self, ["pi", *self.chosen(), *(["-c"] if resume else []), "--mode", "rpc"])


class Claude(Agent):
    reads = True
    transcripts = (".claude/projects/*/*.jsonl",)
    roots = (".claude/projects",)
    result_line, call_line = r'^(?!.*"api-request-blob").*"type":"tool_result"', r'"type":"tool_use"'
    chars = 29_000  # a longer one goes into a file of its own
    integration = ("claude", "plugin", "install", "tailor", "--marketplace", str(ROOT))
    compacts = keeps_thinking = True
    head = {"CLAUDE_CODE_TRANSCRIPT_TAIL_LOAD": "on"}

    def configure(self):
        self.put(".claude.json", {"hasCompletedOnboarding": True, "projects": {str(self.work): {"hasTrustDialogAccepted": True}}})

    def extra_env(self):
        return {
            "ANTHROPIC_BASE_URL": self.stub.url, "ANTHROPIC_API_KEY": KEY, "IS_SANDBOX": "1", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "CLAUDE_CODE_MAX_RETRIES": "0",
        }  # fmt: skip

    flags = ("--dangerously-skip-permissions", "--verbose")

    def argv(self, prompt, resume):
        session = ["--resume", resume] if isinstance(resume, str) else ["-c"] if resume else []
        return ["claude", *self.flags, "--model", self.model, *session, "-p", prompt]

    def open_wire(self, resume):
        stream = ["--input-format", "stream-json", "--output-format", "stream-json"]
        return StreamJson(self, ["claude", *self.flags, "--model", self.model, *(["-c"] if resume else []), "-p", *stream])


class Codex(Agent):
    transcripts = (".codex/sessions/**/rollout-*.jsonl",)
    roots = (".codex/sessions",)
    result_line, call_line = r'"type":"function_call_output"', r'"type":"function_call"'
    aged = compacts = True
    api, model = "responses", "gpt-5"
    integration = ("sh", "-c", f"codex plugin marketplace add {ROOT} && codex plugin add tailor@tailor")
    only_read = True  # threads of these versions are paginated

    def configure(self):
        self.put(
            ".codex/config.toml",
            f'model = "{self.model}"\nmodel_provider = "stub"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
            "check_for_update_on_startup = false\n[analytics]\nenabled = false\n[feedback]\nenabled = false\n"
            f'[model_providers.stub]\nname = "stub"\nbase_url = "{self.stub.url}/v1"\nenv_key = "STUB_KEY"\nwire_api = "responses"\n'
            "request_max_retries = 0\nstream_max_retries = 0\nsupports_websockets = false\n"
            f'[projects."{self.work}"]\ntrust_level = "trusted"\n',
        )

    def extra_env(self):
        return {"STUB_KEY": KEY}

    def argv(self, prompt, resume):
        return ["codex", "exec", "--skip-git-repo-check", *(["resume", "--last"] if resume else []), prompt]

    def open_wire(self, resume):
        return CodexWire(self, ["codex", "app-server"]).open(resume)

    def trust(self):
        """Approves the hooks, as a person does with /hooks."""
        wire = CodexWire(self, ["codex", "app-server"])
        wire.greet()
        listed = wire.call("hooks/list", {"cwds": [str(self.work)]})["data"][0]["hooks"]
        wire.close()
        with (self.home / ".codex/config.toml").open("a") as config:
            for hook in listed:
                own, plugin = hook["currentHash"].split("/")
                config.write(f'\n[hooks.state."{hook["key"]}"]\ntrusted_hash = "{own}"\ntrusted_content_hash = "{plugin}"\n')


class Gemini(Agent):
    reads = True
    transcripts = (".gemini/tmp/*/chats/*.jsonl",)
    roots = (".gemini/tmp",)
    result_line, call_line = r'"content":\[\{"functionResponse"', r'"toolCalls":\['
    last_wins = True
    settings = {"gemini_doubles": True}
    api, model = "gemini", "gemini-2.5-pro"

    def configure(self):
        self.put(
            ".gemini/settings.json",
            {
                "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
                "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "sessionRetention": {"enabled": False}},
                "privacy": {"usageStatisticsEnabled": False},
                "telemetry": {"enabled": False},
                "model": {"name": self.model},
            },
        )

    def extra_env(self):
        return {
            "GOOGLE_GEMINI_BASE_URL": self.stub.url, "GEMINI_API_KEY": KEY, "GEMINI_MODEL": self.model, "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_TELEMETRY_ENABLED": "false",
        }  # fmt: skip

    def argv(self, prompt, resume):
        return ["gemini", "--yolo", "-m", self.model, *(["-r", "latest"] if resume else []), "-p", prompt]

    def open_wire(self, resume):
        return Prompted(self) if resume else Acp(self, ["gemini", "--yolo", "-m", self.model, "--acp"]).open()


class Qwen(Agent):
    reads = True
    transcripts = (".qwen/projects/*/chats/*.jsonl",)
    roots = (".qwen/projects",)
    result_line, call_line = r'"functionResponse"', r'"functionCall"'
    chars = 24_000
    api, model = "chat", "stub"

    def configure(self):
        self.put(
            ".qwen/settings.json",
            {
                "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
                "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
                "privacy": {"usageStatisticsEnabled": False},
                "telemetry": {"enabled": False},
                "memory": {"enableManagedAutoMemory": False},
            },
        )

    def extra_env(self):
        return {"OPENAI_BASE_URL": f"{self.stub.url}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": self.model}

    flags = ("--auth-type", "openai", "--approval-mode", "yolo", "--model")

    def argv(self, prompt, resume):
        return ["qwen", *self.flags, self.model, *(["-c"] if resume else []), "-p", prompt]

    def open_wire(self, resume):
        stream = ["--input-format", "stream-json", "--output-format", "stream-json"]
        return StreamJson(self, ["qwen", *self.flags, self.model, *(["-c"] if resume else []), *stream])


class Copilot(Agent):
    transcripts = (".copilot/session-state/*/events.jsonl",)
    roots = (".copilot/session-state",)
    result_line, call_line = r'"type":"tool.execution_complete"', r'"toolRequests"'
    chars = 19_000  # a longer one goes into a file of its own
    whole_turns = 8
    api, model = "chat", "gpt-4.1"

    def extra_env(self):
        return {
            "COPILOT_PROVIDER_BASE_URL": f"{self.stub.url}/v1", "COPILOT_PROVIDER_TYPE": "openai", "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false", "COPILOT_MODEL": self.model, "COPILOT_ALLOW_ALL": "true",
            "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "1000000",
        }  # fmt: skip

    def argv(self, prompt, resume):
        return ["copilot", "--allow-all", *(["--continue"] if resume else []), "-p", prompt]

    def open_wire(self, resume):
        return Acp(self, ["copilot", "--allow-all", "--acp"]).open(resume)


class Kimi(Agent):
    reads = True
    transcripts = (".kimi-code/sessions/*/*/agents/main/wire.jsonl",)
    roots = (".kimi-code/sessions",)
    result_line, call_line = r'"type":"tool.result"', r'"type":"tool.call"'
    api, model = "chat", "stub"

    def configure(self):
        self.put(
            ".kimi-code/config.toml",
            f'default_model = "stub"\n[providers.stub]\ntype = "openai"\nbase_url = "{self.stub.url}/v1"\napi_key = "{KEY}"\n'
            '[models.stub]\nprovider = "stub"\nmodel = "stub"\nmax_context_size = 1000000\n',
        )

    def extra_env(self):
        return {"KIMI_DISABLE_TELEMETRY": "1", "KIMI_CODE_NO_AUTO_UPDATE": "1", "KIMI_CODE_DISABLE_UPDATE": "1"}

    def argv(self, prompt, resume):
        return ["kimi", *(["-c"] if resume else []), "-p", prompt]

    def open_wire(self, resume):
        return Acp(self, ["kimi", "acp"]).open(resume)


class KimiCliWire(Wire):
    def say(self, text):
        self.send({"role": "user", "content": text})
        self.until(lambda v: v.get("role") == "assistant" and not v.get("tool_calls"))


class KimiCli(Agent):
    transcripts = (".kimi/sessions/*/*/context.jsonl",)
    roots = (".kimi/sessions",)
    result_line, call_line = r'"role": ?"tool"', r'"tool_calls"'
    api, model = "chat", "stub"

    def configure(self):
        self.put(
            ".kimi/config.toml",
            f'default_model = "stub"\ntelemetry = false\n[providers.stub]\ntype = "openai_legacy"\nbase_url = "{self.stub.url}/v1"\napi_key = "{KEY}"\n'
            '[models.stub]\nprovider = "stub"\nmodel = "stub"\nmax_context_size = 1000000\n',
        )

    def extra_env(self):
        return {"KIMI_CLI_NO_AUTO_UPDATE": "1"}

    def argv(self, prompt, resume):
        return ["kimi", "--print", *(["-C"] if resume else []), "-p", prompt]

    def open_wire(self, resume):
        stream = ["--input-format", "stream-json", "--output-format", "stream-json"]
        return KimiCliWire(self, ["kimi", "--print", *(["-C"] if resume else []), *stream])


class Vibe(Agent):
    reads = True
    transcripts = (".vibe/logs/session/*/messages.jsonl",)
    roots = (".vibe/logs/session",)
    result_line, call_line = r'"role": ?"tool"', r'"tool_calls"'
    chars = 15_000
    api, model = "chat", "stub"

    def configure(self):
        self.put(
            ".vibe/config.toml",
            'active_model = "stub"\nenable_telemetry = false\nenable_update_checks = false\nenable_auto_update = false\nauto_approve = true\n'
            f'[[providers]]\nname = "stub"\napi_base = "{self.stub.url}/v1"\napi_key_env_var = "STUB_KEY"\nbackend = "generic"\n'
            '[[models]]\nname = "stub"\nprovider = "stub"\nalias = "stub"\nauto_compact_threshold = 10000000\n'
            "[session_logging]\nenabled = true\n",
        )
        self.put(".vibe/trusted_folders.toml", f'trusted = ["{self.work}"]\nuntrusted = []\n')

    def extra_env(self):
        return {"STUB_KEY": KEY, "MISTRAL_API_KEY": KEY}

    def argv(self, prompt, resume):
        return ["vibe", "--agent", "auto-approve", *(["-c"] if resume else []), "-p", prompt]

    def open_wire(self, resume):
        return Acp(self, ["vibe-acp"]).open(resume)


class ClaudeSdk(Claude):
    """Claude Code below a program that uses the SDK: sdk_client.py."""

    same_program = True
    compacts = keeps_thinking = False

    def open_wire(self, resume):
        return StreamJson(self, [str(self.install / "bin/python"), str(HERE / "sdk_client.py"), self.model])

    def argv(self, prompt, resume):
        return [str(self.install / "bin/python"), str(HERE / "sdk_client.py"), self.model, *(["-c"] if resume else []), prompt]


class Gateway:
    """OpenClaw's gateway, asked over HTTP."""

    def __init__(self, agent):
        self.agent = agent
        log = (agent.home / "gateway.log").open("ab")
        self.process = agent.start(["openclaw", "gateway", "run"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + TURN_SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                self.close()
                raise Stuck(f"the gateway did not start: {(agent.home / 'gateway.log').read_text()[-600:]}")
            time.sleep(0.3)

    def answers(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.agent.port), 1):
            return True
        return False

    def say(self, text):
        body = {"model": "openclaw", "messages": [{"role": "user", "content": text}]}
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", "x-openclaw-session-key": "agent:main:main"}
        url = f"http://127.0.0.1:{self.agent.port}/v1/chat/completions"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            opener.open(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=TURN_SECONDS).read()
        except OSError as failed:
            raise Stuck(f"the gateway: {failed}") from None

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(15)
        end_group(self.process)


class OpenClaw(Agent):
    transcripts = (".openclaw/agents/main/sessions/????????-????-????-????-????????????.jsonl",)
    roots = (".openclaw/agents",)
    result_line, call_line = r'"role":"toolResult"', r'"type":"toolCall"'
    slow = keeps_thinking = True
    last_wins = True  # it writes a turn with signed thinking once more, without the thinking, on a branch of its own

    def configure(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        model = {
            "id": self.model, "name": "stub", "reasoning": True, "input": ["text"], "contextWindow": 1_000_000, "maxTokens": 8192,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        }  # fmt: skip
        provider = {"baseUrl": self.stub.url, "apiKey": KEY, "api": "anthropic-messages", "models": [model]}
        self.put(
            ".openclaw/openclaw.json",
            {
                "gateway": {
                    "mode": "local", "bind": "loopback", "port": self.port, "auth": {"mode": "token", "token": KEY},
                    "http": {"endpoints": {"chatCompletions": {"enabled": True}}},
                },
                "models": {"providers": {"stub": provider}},
                "agents": {"defaults": {
                    "model": {"primary": f"stub/{self.model}"}, "workspace": str(self.work), "skipBootstrap": True, "heartbeat": {"every": "0m"},
                }},
                "tools": {"exec": {"host": "gateway", "security": "full", "ask": "off"}},
                "update": {"checkOnStart": False},
            },
        )  # fmt: skip

    def extra_env(self):
        skipped = ("CHANNELS", "CRON", "GMAIL_WATCHER", "CANVAS_HOST", "BROWSER_CONTROL_SERVER")
        return {**{f"OPENCLAW_SKIP_{name}": "1" for name in skipped}, "OPENCLAW_DISABLE_BONJOUR": "1"}

    def argv(self, prompt, resume):
        return ["openclaw", "agent", "--local", "--agent", "main", "-m", prompt]

    def open_wire(self, resume):
        return Gateway(self)


DRIVERS = {
    "pi": Pi, "claude": Claude, "codex": Codex, "gemini": Gemini, "qwen": Qwen, "copilot": Copilot, "kimi": Kimi, "kimi-cli": KimiCli,
    "vibe": Vibe, "claude-agent-sdk": ClaudeSdk, "openclaw": OpenClaw,
}  # fmt: skip
