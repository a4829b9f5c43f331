"""The programs that own stores, each in a home of its own: how they are set up, driven and resumed, and where their store is."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "agents"))

import agents  # noqa: E402


class Gateway(agents.Gateway):
    """OpenClaw's gateway with many sessions; each has a key."""

    def say(self, text, key="main", image=None):
        shown = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}] if image else []
        body = {"model": "openclaw", "messages": [{"role": "user", "content": [{"type": "text", "text": text}, *shown]}]}
        headers = {"Authorization": f"Bearer {agents.KEY}", "Content-Type": "application/json", "x-openclaw-session-key": f"agent:main:{key}"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.agent.port}/v1/chat/completions", json.dumps(body).encode(), headers)
        return asked(request, "the gateway")

    def call(self, method, **params):
        url = f"ws://127.0.0.1:{self.agent.port}"
        code, said = self.agent.run("gateway", "call", method, "--params", json.dumps(params), "--url", url, "--token", agents.KEY, "--json")
        if code:
            raise agents.Stuck(f"{method}: {said[-600:]}")
        return json.loads(said[said.index("{") :])


class OpenClaw(agents.OpenClaw):
    """OpenClaw since 2026.8. `once` runs the agent in a process of its own, `live` starts the gateway."""

    store = ".openclaw/agents/main/agent/openclaw-agent.sqlite"
    session_id = "s1"

    def configure(self):
        super().configure()
        path = self.home / ".openclaw/openclaw.json"
        config = json.loads(path.read_text())
        config["models"]["providers"]["stub"]["models"][0]["input"] = ["text", "image"]
        path.write_text(json.dumps(config))

    @property
    def path(self):
        return self.home / self.store

    def argv(self, prompt, resume):
        return ["openclaw", "agent", "--local", "--agent", "main", "--session-id", resume or self.session_id, "-m", prompt]

    def open_wire(self, resume):
        return Gateway(self)

    def run(self, *arguments, timeout=agents.TURN_SECONDS):
        """A command of the program; its exit code and what it printed."""
        return ran(self, ["openclaw", *arguments], timeout)


class Served:
    """`opencode serve`, asked over HTTP."""

    def __init__(self, agent, session):
        self.agent, self.session = agent, session
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        log = (agent.home / "serve.log").open("ab")
        argv = ["opencode", "serve", "--hostname", "127.0.0.1", "--port", str(self.port)]
        self.process = agent.start(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + agents.TURN_SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                self.close()
                raise agents.Stuck(f"opencode serve did not start: {(agent.home / 'serve.log').read_text()[-600:]}")
            time.sleep(0.2)
        if session is None:
            self.session = self.ask("POST", "/session", {})["id"]

    def answers(self):
        """The port is open before the server listens, and what is asked then is lost."""
        try:
            return asked(f"http://127.0.0.1:{self.port}/session", "opencode serve", 2) is not None
        except agents.Stuck:
            return False

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"}, method=method)
        return asked(request, f"opencode serve, {path}")

    def say(self, text, *parts):
        return self.ask("POST", f"/session/{self.session}/message", {"parts": [{"type": "text", "text": text}, *parts]})

    def compact(self):
        model = {"providerID": "stub", "modelID": self.agent.model}
        self.ask("POST", f"/session/{self.session}/summarize", model)

    close = agents.Gateway.close


class OpenCode(agents.Agent):
    store = ".local/share/opencode/opencode.db"

    @property
    def path(self):
        return self.home / self.store

    def configure(self):
        model = {
            "name": "stub", "tool_call": True, "attachment": True, "limit": {"context": 1_000_000, "output": 8192},
            "modalities": {"input": ["text", "image"], "output": ["text"]},
        }  # fmt: skip
        options = {"baseURL": f"{self.stub.url}/v1", "apiKey": agents.KEY}
        provider = {"npm": "@ai-sdk/anthropic", "name": "stub", "options": options, "models": {self.model: model}}
        self.put(
            ".config/opencode/opencode.json",
            {
                "model": f"stub/{self.model}", "small_model": f"stub/{self.model}", "provider": {"stub": provider}, "permission": "allow",
                "autoupdate": False, "share": "disabled", "enabled_providers": ["stub"], "compaction": {"auto": False, "prune": False},
            },
        )  # fmt: skip

    def extra_env(self):
        names = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        return {f"OPENCODE_DISABLE_{name}": "1" for name in names}

    def argv(self, prompt, resume):
        return ["opencode", "run", *(["--session", resume] if isinstance(resume, str) else ["-c"] if resume else []), prompt]

    def open_wire(self, resume):
        return Served(self, resume or None)

    def run(self, *arguments, timeout=agents.TURN_SECONDS):
        return ran(self, ["opencode", *arguments], timeout)


def asked(request, whom, timeout=None):
    """The JSON that answers a request on loopback."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return json.loads(opener.open(request, timeout=timeout or agents.TURN_SECONDS).read() or b"null")
    except urllib.error.HTTPError as refused:
        raise agents.Stuck(f"{whom}: {refused.code} {refused.read()[:300].decode('utf-8', 'replace')}") from None
    except OSError as failed:
        raise agents.Stuck(f"{whom}: {failed}") from None


def ran(agent, argv, timeout):
    process = agent.start(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        out, _ = process.communicate(timeout=timeout)
        return process.returncode, out.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        return None, f"no end after {timeout} s"
    finally:
        agents.end_group(process)
