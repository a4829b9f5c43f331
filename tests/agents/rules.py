"""What the four model APIs refuse, and the words in which they do.

Each `check_…` takes the body of a request and raises `Refused` as the real API would. The rules and the error texts are
those of the vendors' documentation and of public bug reports. Lengths are counted as four characters a token.

Signed thinking is bound to what comes before it: `sign` hashes the conversation up to a block, and a later request in
which that part differs is refused. The system prompt and the tools are left out of the hash, because agents put the time
and the state of a repository in there, which is not what these tests are about.
"""

import base64
import binascii
import hashlib
import json
import re

ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
SIGNATURE = "stub."


class Refused(Exception):
    def __init__(self, message, status=400, code=None):
        super().__init__(message)
        self.message, self.status, self.code = message, status, code


def tokens(value):
    return len(json.dumps(value, ensure_ascii=False)) // 4


# --- Anthropic Messages ---


def check_anthropic(body, window=200_000, binds=True):
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused("messages: at least one message is required")
    names = [tool.get("name") for tool in body.get("tools") or []]
    if len(names) != len(set(names)):
        raise Refused("tools: Tool names must be unique.")
    for n, message in enumerate(messages):
        _anthropic_message(n, message, last=n + 1 == len(messages))
    turns = merged(messages)
    if turns[0][1] != "user":
        raise Refused('messages: first message must use the "user" role')
    _anthropic_ids_are_unique(turns)
    _anthropic_pairs(turns)
    for n, role, blocks in turns:
        if role == "assistant":
            _anthropic_server_tools(n, blocks)
            _anthropic_thinking_place(n, blocks)
    if turns[-1][1] != "user":
        raise Refused("This model does not support assistant message prefill. The conversation must end with a user message.")
    _anthropic_signatures(turns, binds)
    count = tokens([body.get("system"), body.get("tools"), messages])
    if count > window:
        raise Refused(f"prompt is too long: {count} tokens > {window} maximum")


def blocks_of(message):
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def merged(messages):
    """The turns as the API sees them: (index of the first message, role, blocks). Neighbours of one role are one turn."""
    turns = []
    for n, message in enumerate(messages):
        if turns and turns[-1][1] == message["role"]:
            turns[-1][2].extend(blocks_of(message))
        else:
            turns.append((n, message["role"], list(blocks_of(message))))
    return turns


def _anthropic_message(n, message, last):
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant"):
        raise Refused(f"messages.{n}.role: Input should be 'user' or 'assistant'")
    if not isinstance(content, (str, list)):
        raise Refused(f"messages.{n}.content: Input should be a valid list")
    if not content and not (last and role == "assistant"):
        raise Refused(f"messages.{n}: all messages must have non-empty content except for the optional final assistant message")
    for m, block in enumerate(blocks_of(message)):
        where = f"messages.{n}.content.{m}"
        if not isinstance(block, dict) or not block.get("type"):
            raise Refused(f"{where}: Input should be an object with a `type`")
        _anthropic_block(where, role, block)


def _anthropic_block(where, role, block):
    kind = block["type"]
    if kind == "text":
        _anthropic_text(block)
    elif kind == "tool_use":
        if role != "assistant":
            raise Refused(f"{where}: `tool_use` blocks can only be in `assistant` messages")
        if not ID.fullmatch(block.get("id") or ""):
            raise Refused(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        if not NAME.fullmatch(block.get("name") or ""):
            raise Refused(f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if not isinstance(block.get("input"), dict):
            raise Refused(f"{where}.tool_use.input: Input should be a valid dictionary")
    elif kind == "tool_result":
        if role != "user":
            raise Refused(f"{where}: `tool_result` blocks can only be in `user` messages")
        content = block.get("content", "")
        for inner in content if isinstance(content, list) else []:
            if inner.get("type") not in ("text", "image", "document", "search_result", "tool_reference"):
                raise Refused(f"{where}.tool_result.content: Input tag '{inner.get('type')}' found using 'type' does not match any of the expected tags")
            _anthropic_block(f"{where}.tool_result.content", role, inner)
    elif kind in ("image", "document"):
        _anthropic_source(where, kind, block.get("source"))
    elif kind == "thinking" and not isinstance(block.get("signature"), str):
        raise Refused(f"{where}.thinking.signature: Field required")


def _anthropic_text(block):
    if not isinstance(block.get("text"), str) or not block["text"]:
        raise Refused("messages: text content blocks must be non-empty")
    if not block["text"].strip():
        raise Refused("messages: text content blocks must contain non-whitespace text")


def _anthropic_source(where, kind, source):
    if not isinstance(source, dict):
        raise Refused(f"{where}.{kind}.source: Field required")
    if source.get("type") == "text" and not (source.get("data") or "").strip():
        raise Refused(f"{where}.{kind}.source.text.data: text content blocks must be non-empty")
    if source.get("type") != "base64":
        return
    allowed = ("application/pdf",) if kind == "document" else ("image/jpeg", "image/png", "image/gif", "image/webp")
    if source.get("media_type") not in allowed:
        raise Refused(f"{where}.{kind}.source.base64.media_type: Input should be {' or '.join(map(repr, allowed))}")
    try:
        data = base64.b64decode(source.get("data") or "", validate=True)
    except binascii.Error:
        raise Refused(f"{where}.{kind}.source.base64: invalid base64 data") from None
    if not data:
        raise Refused(f"{where}.{kind}.source.base64.data: {kind} cannot be empty")
    if kind == "document" and not data.startswith(b"%PDF"):
        raise Refused(f"{where}.document.source.base64.data: The PDF specified was not valid.")


def _anthropic_ids_are_unique(turns):
    seen = set()
    for _, _, blocks in turns:
        for block in blocks:
            if block["type"] in ("tool_use", "server_tool_use"):
                if block["id"] in seen:
                    raise Refused("messages: `tool_use` ids must be unique")
                seen.add(block["id"])


def _anthropic_pairs(turns):
    for at, (n, role, blocks) in enumerate(turns):
        calls = [b["id"] for b in blocks if b["type"] == "tool_use"]
        following = turns[at + 1][2] if at + 1 < len(turns) else []
        leading = [b.get("tool_use_id") for b in leading_results(following)]
        open_calls = [id for id in calls if id not in leading]
        if open_calls:
            raise Refused(
                f"messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(open_calls)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            )
        if role != "user":
            continue
        before = turns[at - 1][2] if at else []
        known = {b["id"] for b in before if b["type"] == "tool_use"}
        seen = set()
        for m, block in enumerate(blocks):
            if block["type"] != "tool_result":
                continue
            id = block.get("tool_use_id")
            if id not in known:
                raise Refused(
                    f"messages.{n}.content.{m}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. "
                    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
            if id in seen:
                raise Refused(f"messages.{n}.content.{m}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}")
            seen.add(id)


def leading_results(blocks):
    for block in blocks:
        if block["type"] != "tool_result":
            return
        yield block


def _anthropic_server_tools(n, blocks):
    open_calls = {}
    for m, block in enumerate(blocks):
        kind = block["type"]
        if kind == "server_tool_use":
            open_calls[block["id"]] = block.get("name")
        elif kind.endswith("_tool_result"):
            if block.get("tool_use_id") not in open_calls:
                raise Refused(
                    f"messages.{n}.content.{m}: unexpected `tool_use_id` found in `{kind}` blocks: {block.get('tool_use_id')}. "
                    f"Each `{kind}` block must have a corresponding `server_tool_use` block before it."
                )
            del open_calls[block["tool_use_id"]]
    for id, name in open_calls.items():
        raise Refused(f"messages.{n}: `{name}` tool use with id `{id}` was found without a corresponding `{name}_tool_result` block")


def _anthropic_thinking_place(n, blocks):
    if blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        raise Refused(f"messages.{n}: The final block in an assistant message cannot be `thinking`.")


def prefix_hash(turns):
    """A hash of turns, without what may differ from request to request."""
    plain = [[role, [_plain(block) for block in blocks]] for _, role, blocks in turns]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:24]


def _plain(value):
    if isinstance(value, dict):
        kept = {key: _plain(v) for key, v in value.items() if key not in ("cache_control", "is_error", "caller")}
        if kept.get("type") == "tool_result" and isinstance(kept.get("content"), str):
            kept["content"] = [{"type": "text", "text": kept["content"]}]
        return kept
    return [_plain(v) for v in value] if isinstance(value, list) else value


def text_hash(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def sign(messages, thinking):
    """The signature of thinking that answers these messages."""
    return base64.b64encode(f"{SIGNATURE}{prefix_hash(merged(messages))}.{text_hash(thinking)}".encode()).decode()


def _anthropic_signatures(turns, binds):
    last = max((at for at, turn in enumerate(turns) if turn[1] == "assistant"), default=-1)
    for at, (n, role, blocks) in enumerate(turns):
        for m, block in enumerate(blocks):
            if role != "assistant" or block["type"] != "thinking":
                continue
            where = f"messages.{n}.content.{m}"
            try:
                said = base64.b64decode(block["signature"], validate=True).decode()
                head, prefix, text = said.split(".")
            except (binascii.Error, ValueError):
                head = prefix = text = None
            if head is None or f"{head}." != SIGNATURE:
                raise Refused(f"{where}: Invalid `signature` in `thinking` block")
            if text != text_hash(block.get("thinking", "")):
                if at == last:
                    raise Refused(
                        f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
                        "These blocks must remain as they were in the original response."
                    )
                raise Refused(f"{where}: Invalid `signature` in `thinking` block")
            before = turns[:at] + ([(n, role, blocks[:m])] if m else [])
            if binds and prefix != prefix_hash(before):
                raise Refused(
                    f"{where}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the "
                    'block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block"'
                )


# --- OpenAI Chat Completions ---


def check_chat(body, window=128_000):
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused("Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
    at = 0
    while at < len(messages):
        at = _chat_message(messages, at)
    count = tokens([messages, body.get("tools")])
    if count > window:
        raise Refused(
            f"This model's maximum context length is {window} tokens. However, your messages resulted in {count} tokens. "
            "Please reduce the length of the messages.",
            code="context_length_exceeded",
        )


def _chat_message(messages, at):
    """Checks the message at this place and the results that answer it; where the next one is."""
    message = messages[at]
    role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
    if role not in ("system", "developer", "user", "assistant", "tool"):
        raise Refused(f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.")
    if role == "tool":
        raise Refused(f"Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'. (messages[{at}])")
    if calls == []:
        raise Refused(f"Invalid 'messages[{at}].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.")
    if content is None and not (role == "assistant" and calls):
        raise Refused(f"Invalid value for 'content': expected a string, got null. (messages[{at}])")
    if not isinstance(content, (str, list, type(None))):
        raise Refused(f"Invalid type for 'messages[{at}].content': expected one of a string or array of objects.")
    if content == []:
        raise Refused(f"Invalid 'messages[{at}].content': empty array. Expected an array with minimum length 1, but got an empty array instead.")
    if calls is None:
        return at + 1
    ids = []
    for n, call in enumerate(calls):
        _chat_call(f"messages[{at}].tool_calls[{n}]", call)
        if call["id"] in ids:
            raise Refused(f"Duplicate value for 'tool_call_id' of '{call['id']}' in message[{at}].")
        ids.append(call["id"])
    answered = []
    after = at + 1
    while after < len(messages) and messages[after].get("role") == "tool":
        _chat_result(messages[after], after, ids, answered)
        after += 1
    missing = [id for id in ids if id not in answered]
    if missing:
        raise Refused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
            f"The following tool_call_ids did not have response messages: {', '.join(missing)}"
        )
    return after


def _chat_call(where, call):
    id, function = call.get("id"), call.get("function") or {}
    if not isinstance(id, str) or not id:
        raise Refused(f"Missing required parameter: '{where}.id'.")
    if len(id) > 40:
        raise Refused(f"Invalid '{where}.id': string too long. Expected a string with maximum length 40, but got a string with length {len(id)} instead.")
    if not isinstance(function.get("arguments"), str):
        raise Refused(f"Invalid type for '{where}.function.arguments': expected a string.")
    if not function.get("name"):
        raise Refused(f"Missing required parameter: '{where}.function.name'.")


def _chat_result(message, at, ids, answered):
    id = message.get("tool_call_id")
    if id not in ids:
        raise Refused(f"Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous message. (messages[{at}])")
    if id in answered:
        raise Refused(f"Duplicate value for 'tool_call_id' of '{id}' in message[{at}].")
    if not isinstance(message.get("content"), (str, list)):
        raise Refused(f"Invalid value for 'content': expected a string, got null. (messages[{at}])")
    answered.append(id)


# --- OpenAI Responses ---

CALLS = {"function_call": "function", "custom_tool_call": "custom tool", "local_shell_call": "local shell", "tool_search_call": "tool search"}
OUTPUTS = {
    "function_call_output": "function_call",
    "custom_tool_call_output": "custom_tool_call",
    "local_shell_call_output": "local_shell_call",
    "tool_search_output": "tool_search_call",
}


def check_responses(body, window=400_000):
    items = body.get("input")
    if isinstance(items, str):
        items = [{"type": "message", "role": "user", "content": items}]
    if not isinstance(items, list) or not items:
        raise Refused("Missing required parameter: 'input'.")
    called, answered, ids = {}, set(), set()
    for n, item in enumerate(items):
        kind = item.get("type") or "message"
        if item.get("id"):
            if item["id"] in ids:
                raise Refused(f"Duplicate item found with id {item['id']}. Remove duplicate items from your input and try again.")
            ids.add(item["id"])
        if kind == "message":
            _responses_message(n, item)
        elif kind in CALLS:
            _responses_call(n, kind, item, called)
        elif kind in OUTPUTS:
            _responses_output(n, kind, item, called, answered)
        elif kind == "reasoning":
            _responses_reasoning(n, item, items)
    for id, kind in called.items():
        if id not in answered:
            raise Refused(f"No tool output found for {CALLS[kind]} call {id}.")
    if tokens([items, body.get("tools"), body.get("instructions")]) > window:
        raise Refused(
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            code="context_length_exceeded",
        )


def _responses_message(n, item):
    if item.get("role") not in ("user", "assistant", "system", "developer"):
        raise Refused(f"Invalid value: '{item.get('role')}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.")
    content = item.get("content")
    if not isinstance(content, (str, list)):
        raise Refused(f"Invalid type for 'input[{n}].content': expected one of an array of objects or string.")
    wanted = ("output_text", "refusal") if item["role"] == "assistant" else ("input_text", "input_image", "input_file")
    for m, part in enumerate(content if isinstance(content, list) else []):
        if part.get("type") not in wanted:
            raise Refused(f"Invalid value: '{part.get('type')}'. Supported values are: {', '.join(map(repr, wanted))}. (input[{n}].content[{m}])")


def _responses_call(n, kind, item, called):
    id = item.get("call_id")
    if not isinstance(id, str) or not id:
        raise Refused(f"Missing required parameter: 'input[{n}].call_id'.")
    if len(id) > 64:
        raise Refused(f"Invalid 'input[{n}].call_id': string too long. Expected a string with maximum length 64, but got a string with length {len(id)} instead.")
    if kind == "function_call" and not isinstance(item.get("arguments"), str):
        raise Refused(f"Invalid type for 'input[{n}].arguments': expected a string.")
    if id in called:
        raise Refused(f"Duplicate item found with id {id}. Remove duplicate items from your input and try again.")
    called[id] = kind


def _responses_output(n, kind, item, called, answered):
    id = item.get("call_id")
    if called.get(id) != OUTPUTS[kind]:
        raise Refused(f"No tool call found for {CALLS[OUTPUTS[kind]]} call output with call_id {id}.")
    if id in answered:
        raise Refused(f"Duplicate item found with id {id}. Remove duplicate items from your input and try again.")
    if kind != "tool_search_output" and not isinstance(item.get("output"), (str, list)):
        raise Refused(f"Invalid type for 'input[{n}].output': expected one of a string or array of objects.")
    answered.add(id)


def _responses_reasoning(n, item, items):
    if not isinstance(item.get("summary"), list):
        raise Refused(f"Missing required parameter: 'input[{n}].summary'.")
    following = items[n + 1].get("type") or "message" if n + 1 < len(items) else None
    of_user = following == "message" and items[n + 1].get("role") != "assistant"
    if following is None or of_user or following in OUTPUTS:
        raise Refused(f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item.")
    sealed = item.get("encrypted_content")
    if sealed is not None and not sealed.startswith(SIGNATURE):
        raise Refused(f"The encrypted content for item {item.get('id')} could not be verified.", code="invalid_encrypted_content")


# --- Gemini ---


def check_gemini(body, model="", window=1_048_576):
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        raise Refused("* GenerateContentRequest.contents: contents is not specified")
    for n, content in enumerate(contents):
        if content.get("role", "user") not in ("user", "model", "function"):
            raise Refused("Please use a valid role: user, model.")
        if not content.get("parts"):
            raise Refused(f"* GenerateContentRequest.contents[{n}].parts: contents.parts must not be empty.")
        for m, part in enumerate(content["parts"]):
            if not any(part.get(key) is not None for key in GEMINI_DATA):
                raise Refused(
                    f"* GenerateContentRequest.contents[{n}].parts[{m}].data: required oneof field 'data' must have one initialized field"
                )
    turns = [(c.get("role", "user"), calls_in(c), responses_in(c)) for c in contents]
    for at, (_, calls, responses) in enumerate(turns):
        before = turns[at - 1] if at else (None, [], [])
        if calls and not (before[2] or before[0] == "user"):
            raise Refused("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
        if responses and not before[1]:
            raise Refused("Please ensure that function response turn comes immediately after a function call turn.")
        if (responses or before[1]) and len(responses) != len(before[1]):
            raise Refused(
                "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
            )
        if sorted(r.get("name", "") for r in responses) != sorted(c.get("name", "") for c in before[1] if responses):
            raise Refused("Please ensure that the names of function responses are those of the function calls.")
    if turns[-1][0] == "model":
        raise Refused("Please ensure that single turn requests end with a user role or the role field is empty.")
    if model.startswith("gemini-3"):
        _gemini_signatures(contents)
    count = tokens(contents)
    if count > window:
        raise Refused(f"The input token count ({count}) exceeds the maximum number of tokens allowed ({window}).")


GEMINI_DATA = ("text", "inlineData", "functionCall", "functionResponse", "fileData", "executableCode", "codeExecutionResult")


def calls_in(content):
    return [p["functionCall"] for p in content["parts"] if p.get("functionCall")]


def responses_in(content):
    return [p["functionResponse"] for p in content["parts"] if p.get("functionResponse")]


def _gemini_signatures(contents):
    """In the turn at hand, the first call of each step has to carry the signature that it came with."""
    start = max((n for n, c in enumerate(contents) if c.get("role", "user") == "user" and not responses_in(c)), default=0)
    for n, content in enumerate(contents[start:], start):
        first = next((p for p in content["parts"] if p.get("functionCall")), None)
        if first is None:
            continue
        signature = first.get("thoughtSignature")
        if not signature:
            raise Refused(
                f"Function call is missing a thought_signature in functionCall parts. (function call `default_api:{first['functionCall'].get('name')}`, position {n + 1})"
            )
        if signature != GEMINI_SIGNATURE and signature not in GEMINI_WITHOUT:
            raise Refused("Corrupted thought signature.")


GEMINI_SIGNATURE = base64.b64encode(b"stub.thought").decode()
GEMINI_WITHOUT = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")  # the API takes these for any
