#!/usr/bin/env python3
"""A strict model on 127.0.0.1: four APIs, JSON and streaming. It refuses what the real ones refuse (`rules.py`) and does
what the prompt says:

    prompt-3: calls=2 rounds=1 chars=46000 think

asks for two shell commands at once that print 46,000 characters each, thinks first, and, once the results are there,
answers `reply-3`. The commands and their output carry the tags `call-3-1-1` and `result-3-1-1` (prompt, round, call), so
that a later request shows what is left of the conversation.

    python3 stub.py [PORT]

prints its address and a line for each request. In tests it is a `Stub` in the same process; `log` holds what was asked.
"""

import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import rules

PROMPT = re.compile(r"prompt-(\d+):((?: \w+(?:=\d+)?)*)")
SHELLS = ("exec_command", "shell_command", "run_shell_command", "Bash", "bash", "Shell", "shell", "exec", "run_command")
SUMMARY = "A summary of the conversation: <summary>files were listed</summary>"


class Stub:
    """The server, and what it was asked. `settings` may hold `window` (tokens) and `binds`; `answer` is what the model says to a
    request, where it does not do what the prompt says."""

    def __init__(self, port=0, answer=None, **settings):
        self.settings = settings
        self.answer = answer or Asked.answer
        self.log = []
        self.strays = []
        self.said = threading.Condition()
        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.server.stub = self
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def note(self, asked):
        with self.said:
            self.log.append(asked)
            self.said.notify_all()


class Asked:
    """One request: what it holds of the conversation, and why it was refused, if it was."""

    def __init__(self, api, body, size_bytes=0):
        self.api, self.body, self.refused, self.size_bytes = api, body, None, size_bytes
        self.parts = list(PARTS[api](body))
        self.tools = tool_schemas(api, body)
        self.size = sum(len(text) for _, text in self.parts)
        found = [m for kind, text in self.parts if kind == "user" for m in PROMPT.finditer(text)]
        self.prompt = int(found[-1][1]) if found else None
        self.orders = dict((word.partition("=")[0], int(word.partition("=")[2] or 1)) for word in found[-1][2].split()) if found else {}

    def tags(self, kind, pattern):
        """What the pattern finds in parts of this kind."""
        return {tag for k, text in self.parts if k == kind for tag in re.findall(pattern, text)}

    def held(self):
        """What is there of the conversation."""
        return {
            "prompts": self.tags("user", r"prompt-(\d+):"),
            "replies": self.tags("assistant", r"reply-(\d+)"),
            "calls": self.tags("call", r"call-(\d+-\d+-\d+)"),
            "results": self.tags("result", r"result-(\d+-\d+-\d+) the"),
        }

    def answer(self):
        """What the model says: (thinking or None, text, [(id, tool, arguments)])."""
        if self.prompt is None or not self.tools:
            return None, SUMMARY, []
        mine = {tag.split("-")[1] for tag in self.tags("call", r"call-(\d+-\d+-\d+)") if tag.split("-")[0] == str(self.prompt)}
        turn, n = len(mine) + 1, self.prompt
        thinking = f"thought-{n}-{turn}" if self.orders.get("think") else None
        name = next((name for name in SHELLS if name in self.tools), None)
        if turn > self.orders.get("rounds", 1) or not self.orders.get("calls") or name is None:
            return thinking, f"reply-{n}", []
        calls = []
        for call in range(1, self.orders["calls"] + 1):
            tag = f"{n}-{turn}-{call}"
            line = f"result-{tag} the quick brown fox jumps over the lazy dog and runs on"
            # One ends after the other, so that their results are always written in this order.
            command = f"yes {line} | head -c {self.orders.get('chars', 100)}; sleep {(call - 1) * 0.6:.1f} # call-{tag}"
            id = f"call_{tag.replace('-', '_')}_{time.monotonic_ns() % 10**9}"
            calls.append((id, name, arguments(self.tools[name], command)))
        return thinking, f"step-{n}-{turn}", calls


def arguments(schema, command):
    """The arguments with which a shell tool of this schema runs a command."""
    properties = schema.get("properties") or {"command": {}}
    key = next((k for k in ("command", "cmd", "script") if k in properties), "command")
    made = {key: ["bash", "-c", command] if properties.get(key, {}).get("type") == "array" else command}
    for name in schema.get("required") or []:
        kind = properties.get(name, {}).get("type")
        made.setdefault(name, {"boolean": False, "integer": 60, "number": 60, "array": [], "object": {}}.get(kind, "list files"))
    return made


# --- what is in a request, as (kind, text); kinds are user, assistant, call, result, other ---


def flat(value):
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(map(flat, value))
    if isinstance(value, dict):
        return "\n".join(flat(v) for v in value.values())
    return ""


def parts_of_anthropic(body):
    for message in body.get("messages") or []:
        for block in rules.blocks_of(message) or []:
            kind = {"text": message["role"], "tool_use": "call", "tool_result": "result"}.get(block.get("type"), "other")
            yield kind, flat({"text": block.get("text"), "call": block.get("input"), "result": block.get("content")})


def parts_of_chat(body):
    for message in body.get("messages") or []:
        role = message.get("role")
        yield {"tool": "result", "user": "user", "assistant": "assistant"}.get(role, "other"), flat(message.get("content"))
        for call in message.get("tool_calls") or []:
            yield "call", flat(call.get("function"))


def parts_of_responses(body):
    items = body.get("input") or []
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        kind = item.get("type") or "message"
        if kind == "message":
            yield item.get("role") if item.get("role") in ("user", "assistant") else "other", flat(item.get("content"))
        elif kind in rules.OUTPUTS:
            yield "result", flat(item.get("output"))
        elif kind in rules.CALLS:
            yield "call", flat([item.get("arguments"), item.get("input"), item.get("action")])
        else:
            yield "other", flat(item.get("summary"))


def parts_of_gemini(body):
    for content in body.get("contents") or []:
        for part in content.get("parts") or []:
            if part.get("functionCall"):
                yield "call", flat(part["functionCall"].get("args"))
            elif part.get("functionResponse"):
                yield "result", flat(part["functionResponse"].get("response"))
            else:
                role = "assistant" if content.get("role") == "model" else "user"
                yield "other" if part.get("thought") else role, part.get("text") or ""


PARTS = {"anthropic": parts_of_anthropic, "chat": parts_of_chat, "responses": parts_of_responses, "gemini": parts_of_gemini}


def tool_schemas(api, body):
    """The schema of the arguments of each tool that is offered."""
    tools = body.get("tools") or []
    if api == "anthropic":
        return {t.get("name"): t.get("input_schema") or {} for t in tools}
    if api == "chat":
        return {t["function"]["name"]: t["function"].get("parameters") or {} for t in tools if t.get("function")}
    if api == "responses":
        return {t["name"]: t.get("parameters") or {} for t in tools if t.get("type") == "function"}
    declared = [d for t in tools for d in t.get("functionDeclarations") or []]
    return {d["name"]: d.get("parametersJsonSchema") or d.get("parameters") or {} for d in declared}


# --- answers, as JSON and as events ---


def anthropic_message(asked, thinking, text, calls):
    content = []
    if thinking:
        content.append({"type": "thinking", "thinking": thinking, "signature": rules.sign(asked.body["messages"], thinking)})
    content.append({"type": "text", "text": text})
    content += [{"type": "tool_use", "id": f"toolu_{id}", "name": name, "input": args} for id, name, args in calls]
    return {
        "id": f"msg_{time.monotonic_ns()}", "type": "message", "role": "assistant", "model": asked.body.get("model"),
        "content": content, "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": asked.size // 4, "output_tokens": 10},
    }  # fmt: skip


def anthropic_events(message):
    start = {**message, "content": [], "stop_reason": None}
    yield "message_start", {"message": start}
    for n, block in enumerate(message["content"]):
        kind = block["type"]
        empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}[kind]
        yield "content_block_start", {"index": n, "content_block": {**block, **empty}}
        if kind == "text":
            deltas = [{"type": "text_delta", "text": block["text"]}]
        elif kind == "thinking":
            deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}, {"type": "signature_delta", "signature": block["signature"]}]
        else:
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        for delta in deltas:
            yield "content_block_delta", {"index": n, "delta": delta}
        yield "content_block_stop", {"index": n}
    yield "message_delta", {"delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}, "usage": message["usage"]}
    yield "message_stop", {}


def chat_message(asked, thinking, text, calls):
    message = {"role": "assistant", "content": text}
    if thinking:
        message["reasoning_content"] = thinking
    if calls:
        message["tool_calls"] = [
            {"id": id[-40:], "type": "function", "function": {"name": name, "arguments": json.dumps(args)}} for id, name, args in calls
        ]
    count = asked.size // 4
    return {
        "id": f"chatcmpl-{time.monotonic_ns()}", "object": "chat.completion", "created": int(time.time()), "model": asked.body.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": count, "completion_tokens": 10, "total_tokens": count + 10},
    }  # fmt: skip


def chat_events(whole):
    choice = whole["choices"][0]
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": n, **call} for n, call in enumerate(delta["tool_calls"])]
    chunk = {**whole, "object": "chat.completion.chunk"}
    yield None, {**chunk, "usage": None, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield None, {**chunk, "usage": None, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield None, {**chunk, "choices": []}
    yield None, "[DONE]"


def responses_answer(asked, thinking, text, calls):
    stamp = time.monotonic_ns()
    output = []
    if thinking:
        summary = [{"type": "summary_text", "text": thinking}]
        output.append({"id": f"rs_{stamp}", "type": "reasoning", "summary": summary, "encrypted_content": f"{rules.SIGNATURE}{stamp}"})
    said = [{"type": "output_text", "text": text, "annotations": []}]
    output.append({"id": f"msg_{stamp}", "type": "message", "role": "assistant", "status": "completed", "content": said})
    for id, name, args in calls:
        output.append({"id": f"fc_{id}", "type": "function_call", "call_id": id, "name": name, "arguments": json.dumps(args), "status": "completed"})
    count = asked.size // 4
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": f"resp_{stamp}", "object": "response", "created_at": int(time.time()), "status": "completed", "model": asked.body.get("model"),
        "output": output, "usage": {"input_tokens": count, "output_tokens": 10, "total_tokens": count + 10, **details},
    }  # fmt: skip


def responses_events(whole):
    yield "response.created", {"response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    for n, item in enumerate(whole["output"]):
        yield "response.output_item.added", {"output_index": n, "item": item}
        if item["type"] == "message":
            yield "response.output_text.delta", {"output_index": n, "content_index": 0, "item_id": item["id"], "delta": item["content"][0]["text"]}
        yield "response.output_item.done", {"output_index": n, "item": item}
    yield "response.completed", {"response": whole}


def gemini_answer(asked, thinking, text, calls):
    parts = [{"text": thinking, "thought": True}] if thinking else []
    parts.append({"text": text})
    parts += [{"functionCall": {"id": id, "name": name, "args": args}} for id, name, args in calls]
    if calls:
        next(p for p in parts if "functionCall" in p)["thoughtSignature"] = rules.GEMINI_SIGNATURE
    count = asked.size // 4
    return {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": count, "candidatesTokenCount": 10, "totalTokenCount": count + 10},
        "modelVersion": "stub", "responseId": f"r{time.monotonic_ns()}",
    }  # fmt: skip


ANSWERS = {
    "anthropic": (anthropic_message, anthropic_events),
    "chat": (chat_message, chat_events),
    "responses": (responses_answer, responses_events),
    "gemini": (gemini_answer, lambda whole: [(None, whole)]),
}


def error_body(api, refused):
    kind = "invalid_request_error"
    if api == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": refused.message}, "request_id": "req_stub"}
    if api == "gemini":
        return {"error": {"code": refused.status, "message": refused.message, "status": "INVALID_ARGUMENT"}}
    return {"error": {"message": refused.message, "type": kind, "param": None, "code": refused.code}}


def check(api, body, path, settings):
    window = {"window": settings["window"]} if "window" in settings else {}
    if api == "anthropic":
        rules.check_anthropic(body, binds=settings.get("binds", True), **window)
    elif api == "gemini":
        body = without_doubles(body) if settings.get("gemini_doubles") else body
        rules.check_gemini(body, model=path.split("models/")[-1].split(":")[0], **window)
    else:
        {"chat": rules.check_chat, "responses": rules.check_responses}[api](body, **window)


def without_doubles(body):
    """Without calls and responses that were there before: Gemini CLI 0.61 sends some again after a resume."""
    seen, contents = set(), []
    for content in body.get("contents") or []:
        parts = []
        for part in content.get("parts") or []:
            kind = next((kind for kind in ("functionCall", "functionResponse") if part.get(kind)), None)
            id = (kind, part[kind].get("id")) if kind else None
            if id is None or id[1] is None or id not in seen:
                parts.append(part)
            seen.add(id)
        if parts or not content.get("parts"):
            contents.append({**content, "parts": parts})
    return {**body, "contents": contents}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path.partition("?")[0].endswith("/models"):
            names = [{"id": "stub", "object": "model", "slug": "stub", "display_name": "stub"}]
            self.reply(200, {"object": "list", "data": names, "models": names, "has_more": False})
        else:
            self.stray()

    do_HEAD = do_GET

    def do_POST(self):
        path = self.path.partition("?")[0]
        body = self.body()
        if path.endswith("count_tokens") or path.endswith(":countTokens"):
            count = rules.tokens(body)
            self.reply(200, {"input_tokens": count, "totalTokens": count})
        elif path.endswith("/messages"):
            self.serve("anthropic", body)
        elif path.endswith("/chat/completions"):
            self.serve("chat", body)
        elif path.endswith("/responses"):
            self.serve("responses", body)
        elif path.endswith(":generateContent") or path.endswith(":streamGenerateContent"):
            self.serve("gemini", body, stream=path.endswith(":streamGenerateContent"))
        else:
            self.stray()

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.size_bytes = len(data)
        try:
            return json.loads(data or b"{}")
        except ValueError:
            return {}

    def stray(self):
        self.server.stub.strays.append(f"{self.command} {self.path}")
        self.reply(404, {"error": {"message": "not here", "type": "not_found_error"}})

    def serve(self, api, body, stream=None):
        stub = self.server.stub
        asked = Asked(api, body, self.size_bytes)
        try:
            check(api, body, self.path, stub.settings)
        except rules.Refused as refused:
            asked.refused = refused.message
            stub.note(asked)
            self.reply(refused.status, error_body(api, refused))
            return
        make, events = ANSWERS[api]
        answer = make(asked, *stub.answer(asked))
        stub.note(asked)
        if body.get("stream") if stream is None else stream:
            self.stream(events(answer), typed=api in ("anthropic", "responses"))
        else:
            self.reply(200, answer)

    def reply(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def stream(self, events, typed):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for number, (name, data) in enumerate(events):
            if typed:
                self.wfile.write(f"event: {name}\n".encode())
                data = {"type": name, "sequence_number": number, **data}
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(f"data: {text}\n\n".encode())


def main():
    stub = Stub(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    print(stub.url, flush=True)
    seen = 0
    while True:
        with stub.said:
            stub.said.wait_for(lambda: len(stub.log) > seen)
            fresh, seen = stub.log[seen:], len(stub.log)
        for asked in fresh:
            print(f"{asked.api}: prompt {asked.prompt}, {asked.size} characters, {asked.refused or 'accepted'}", flush=True)


if __name__ == "__main__":
    main()
