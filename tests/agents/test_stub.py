"""The stub's rules against the APIs' documented errors, and its answers against its own rules.

    python3 -m unittest discover -s tests/agents
"""

import base64
import copy
import json
import unittest
import urllib.error
import urllib.request

import rules
from stub import Stub

PDF = base64.b64encode(b"%PDF-1.7 one page").decode()
PNG = base64.b64encode(b"\x89PNG not looked at").decode()


def user(*content):
    return {"role": "user", "content": list(content)}


def assistant(*content):
    return {"role": "assistant", "content": list(content)}


def text(value):
    return {"type": "text", "text": value}


def use(id):
    return {"type": "tool_use", "id": id, "name": "bash", "input": {}}


def result(id, content="ok"):
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def thinking(before, thought="hm"):
    return {"type": "thinking", "thinking": thought, "signature": rules.sign(before, thought)}


class Refusals(unittest.TestCase):
    """`accepted` and `refused` say what a request comes to; each class names its API's check."""

    check = None

    def accepted(self, *messages, **settings):
        type(self).check(self.body(messages), **settings)

    def refused(self, wanted, *messages, **settings):
        with self.assertRaises(rules.Refused) as caught:
            type(self).check(self.body(messages), **settings)
        self.assertIn(wanted, caught.exception.message)


class Anthropic(Refusals):
    check = staticmethod(rules.check_anthropic)

    def body(self, messages):
        return {"messages": list(messages)}

    def test_pairs(self):
        ask, end = user(text("go")), user(text("on"))
        self.accepted(ask, assistant(use("a"), use("b")), user(result("b"), result("a"), text("and")))
        self.accepted(ask, assistant(use("a"), use("b")), user(result("a")), user(result("b")))  # neighbours are merged
        missing = "`tool_use` ids were found without `tool_result` blocks immediately after: b. Each `tool_use` block must have"
        self.refused(missing, ask, assistant(use("a"), use("b")), user(result("a")))
        self.refused("messages.1: `tool_use` ids were found", ask, assistant(use("a")))
        self.refused("messages.1: `tool_use` ids were found", ask, assistant(use("a")), user(text("first"), result("a")))
        late = [assistant(text("x")), user(result("a"))]
        self.refused("messages.1: `tool_use` ids were found", ask, assistant(use("a")), end, *late)
        unexpected = "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: z. Each `tool_result` block must"
        self.refused(unexpected, ask, assistant(text("hi")), user(result("z")))
        self.refused("each tool_use must have a single result", ask, assistant(use("a")), user(result("a"), result("a")))

    def test_tool_names(self):
        bad = "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
        self.refused(bad, user(text("go")), assistant({**use("a"), "name": "ba sh<x>"}), user(result("a")))
        self.refused(bad, user(text("go")), assistant({**use("a"), "name": "b" * 129}), user(result("a")))
        self.accepted(user(text("go")), assistant({**use("a"), "name": "b" * 128}), user(result("a")))

    def test_ids(self):
        ask = user(text("go"))
        again = [assistant(use("a")), user(result("a"))]
        self.refused("`tool_use` ids must be unique", ask, *again, *copy.deepcopy(again))
        self.refused("String should match pattern '^[a-zA-Z0-9_-]+$'", ask, assistant(use("a:1")), user(result("a:1")))
        self.refused("Input should be a valid dictionary", ask, assistant({**use("a"), "input": "ls"}), user(result("a")))

    def test_texts_and_roles(self):
        ask = user(text("go"))
        self.accepted({"role": "user", "content": "go"}, {"role": "user", "content": "on"})
        self.refused("at least one message is required")
        self.refused("text content blocks must be non-empty", user(text("")))
        self.refused("text content blocks must contain non-whitespace text", user(text(" \n")))
        self.refused("text content blocks must be non-empty", ask, assistant(use("a")), user(result("a", [text("")])))
        self.accepted(ask, assistant(use("a")), user(result("a", "")))
        self.refused("all messages must have non-empty content", ask, {"role": "assistant", "content": []}, ask)
        self.refused('first message must use the "user" role', assistant(text("hi")), ask)
        self.refused("Input should be 'user' or 'assistant'", {"role": "tool", "content": "x"})
        self.refused("does not support assistant message prefill", ask, assistant(text("hi")))
        self.refused("`tool_use` blocks can only be in `assistant` messages", user(use("a")))

    def test_server_tools(self):
        ask, on = user(text("go")), user(text("on"))
        call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
        found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
        self.accepted(ask, assistant(call, found, text("there")), on)
        self.accepted(ask, assistant(call), assistant(found), on)
        missing = "`web_search` tool use with id `srvtoolu_1` was found without a corresponding `web_search_tool_result` block"
        self.refused(missing, ask, assistant(call, text("there")), on)
        self.refused(missing, ask, assistant(call), on, assistant(found), on)
        self.refused("unexpected `tool_use_id` found in `web_search_tool_result` blocks: srvtoolu_1", ask, assistant(found, call), on)

    def test_documents_and_images(self):
        def block(kind, media, data):
            return user({"type": kind, "source": {"type": "base64", "media_type": media, "data": data}})

        self.accepted(block("document", "application/pdf", PDF))
        self.accepted(block("image", "image/png", PNG))
        self.refused("The PDF specified was not valid", block("document", "application/pdf", PNG))
        self.refused("invalid base64 data", block("image", "image/png", "%%%"))
        self.refused("cannot be empty", block("document", "application/pdf", ""))
        self.refused("media_type: Input should be", block("image", "image/tiff", PNG))
        self.refused("text content blocks must be non-empty", user({"type": "document", "source": {"type": "text", "data": " "}}))

    def test_thinking(self):
        ask, on = user(text("go")), user(text("on"))
        thought = thinking([ask])
        self.accepted(ask, assistant(thought, text("hi")), on)
        self.refused("Invalid `signature` in `thinking` block", user(text("gone")), assistant(thought, text("hi")), on)
        self.accepted(user(text("gone")), assistant(thought, text("hi")), on, binds=False)
        first = [ask, assistant(use("a")), user(result("a", "long output"))]
        then = assistant(thinking(first), text("done"))
        self.accepted(*first, then, on)
        self.refused("The block is bound to a different conversation", *first[:2], user(result("a", "cut")), then, on)
        other = {**thought, "thinking": "changed"}
        self.refused("blocks in the latest assistant message cannot be modified", ask, assistant(other, text("hi")), on)
        self.refused("Invalid `signature`", ask, assistant(other, text("hi")), on, assistant(text("so")), on)
        self.refused("Invalid `signature`", ask, assistant({**thought, "signature": "abc"}, text("hi")), on)
        self.refused("final block in an assistant message cannot be `thinking`", ask, assistant(text("hi"), thought), on)
        self.refused("signature: Field required", ask, assistant({"type": "thinking", "thinking": "hm"}, text("hi")), on)

    def test_the_hash_leaves_out_what_may_differ(self):
        ask, on = user(text("go")), user(text("on"))
        cached = user({**text("go"), "cache_control": {"type": "ephemeral"}})
        self.accepted(cached, assistant(thinking([ask]), text("hi")), on)
        plain = [ask, assistant(use("a")), user(result("a", "output"))]
        blocks = [ask, assistant(use("a")), user(result("a", [text("output")]))]
        self.accepted(*blocks, assistant(thinking(plain), text("hi")), on)

    def test_length(self):
        self.accepted(user(text("x" * 3000)), window=1000)
        self.refused("tokens > 1000 maximum", user(text("x" * 5000)), window=1000)
        self.refused("prompt is too long: ", user(text("x" * 5000)), window=1000)


class Chat(Refusals):
    check = staticmethod(rules.check_chat)

    def body(self, messages):
        return {"messages": list(messages)}

    def calls(self, *ids, **more):
        made = [{"id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"}} for id in ids]
        return {"role": "assistant", "content": None, "tool_calls": made, **more}

    def tool(self, id, content="ok"):
        return {"role": "tool", "tool_call_id": id, "content": content}

    def test_pairs(self):
        ask = {"role": "user", "content": "go"}
        self.accepted(ask, self.calls("a", "b"), self.tool("b"), self.tool("a"), ask)
        missing = "must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: b"
        self.refused(missing, ask, self.calls("a", "b"), self.tool("a"))
        self.refused(missing, ask, self.calls("a", "b"), self.tool("a"), ask, self.tool("b"))
        self.refused("messages with role 'tool' must be a response to a preceding message with 'tool_calls'", ask, self.tool("a"))
        self.refused("Duplicate value for 'tool_call_id' of 'a'", ask, self.calls("a"), self.tool("a"), self.tool("a"))
        self.refused("not found in 'tool_calls' of previous message", ask, self.calls("a"), self.tool("a"), self.tool("c"))

    def test_shapes(self):
        ask = {"role": "user", "content": "go"}
        self.refused("empty array. Expected an array with minimum length 1")
        self.refused("messages[1].tool_calls': empty array", ask, self.calls())
        self.refused("expected a string, got null", ask, {"role": "assistant", "content": None})
        self.refused("Invalid value: 'model'", {"role": "model", "content": "x"})
        self.refused("string too long. Expected a string with maximum length 40", ask, self.calls("a" * 41), self.tool("a" * 41))
        broken = self.calls("a")
        broken["tool_calls"][0]["function"]["arguments"] = {}
        self.refused("function.arguments': expected a string", ask, broken, self.tool("a"))

    def test_length(self):
        self.refused("maximum context length is 100 tokens", {"role": "user", "content": "x" * 1000}, window=100)


class Responses(Refusals):
    check = staticmethod(rules.check_responses)
    ask = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}

    def body(self, messages):
        return {"input": list(messages)}

    def call(self, call_id, **more):
        return {"type": "function_call", "call_id": call_id, "name": "shell", "arguments": "{}", **more}

    def output(self, call_id, **more):
        return {"type": "function_call_output", "call_id": call_id, "output": "ok", **more}

    def test_pairs(self):
        self.accepted(self.ask, self.call("a"), self.call("b"), self.output("b"), self.output("a"))
        self.refused("No tool output found for function call a.", self.ask, self.call("a"), self.ask)
        self.refused("No tool call found for function call output with call_id a.", self.ask, self.output("a"))
        self.refused("No tool call found for function call output", self.ask, self.output("a"), self.call("a"))
        self.refused("No tool call found for custom tool call output", self.ask, self.call("a"), self.output("a", type="custom_tool_call_output"))
        self.refused("Duplicate item found with id a", self.ask, self.call("a"), self.output("a"), self.output("a"))
        self.refused("Duplicate item found with id fc_1", self.ask, self.call("a", id="fc_1"), self.output("a"), self.call("b", id="fc_1"), self.output("b"))
        self.refused("maximum length 64", self.ask, self.call("a" * 65), self.output("a" * 65))

    def test_reasoning(self):
        reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": f"{rules.SIGNATURE}1"}
        self.accepted(self.ask, reasoning, self.said, self.ask)
        self.accepted(self.ask, reasoning, self.call("a"), self.output("a"))
        alone = "Item 'rs_1' of type 'reasoning' was provided without its required following item."
        self.refused(alone, self.ask, reasoning)
        self.refused(alone, self.ask, reasoning, self.ask)
        self.refused("could not be verified", self.ask, {**reasoning, "encrypted_content": "changed"}, self.said)
        self.refused("summary", self.ask, {"type": "reasoning", "id": "rs_1"}, self.said)

    def test_shapes(self):
        self.refused("Missing required parameter: 'input'")
        self.refused("Invalid value: 'input_text'", {**self.said, "content": [{"type": "input_text", "text": "x"}]})
        self.refused("exceeds the context window", {**self.ask, "content": "x" * 1000}, window=100)


class Gemini(Refusals):
    check = staticmethod(rules.check_gemini)
    ask = {"role": "user", "parts": [{"text": "go"}]}
    said = {"role": "model", "parts": [{"text": "hi"}]}

    def body(self, messages):
        return {"contents": list(messages)}

    def call(self, *names, **more):
        return {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}, **more} for name in names]}

    def response(self, *names):
        return {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {}}} for name in names]}

    def test_turns(self):
        self.accepted(self.ask, self.call("a", "b"), self.response("a", "b"), self.said, self.ask)
        number = "number of function response parts is equal to the number of function call parts"
        self.refused(number, self.ask, self.call("a", "b"), self.response("a"))
        self.refused(number, self.ask, self.call("a"), self.response("a", "a"))
        self.refused(number, self.ask, self.call("a"), self.ask)
        self.refused("function response turn comes immediately after a function call turn", self.ask, self.response("a"))
        self.refused("function call turn comes immediately after a user turn", self.ask, self.said, self.call("a"), self.response("a"))
        self.refused("names of function responses", self.ask, self.call("a"), self.response("b"))
        self.refused("end with a user role", self.ask, self.said)

    def test_shapes(self):
        self.refused("contents is not specified")
        self.refused("parts must not be empty", {"role": "user", "parts": []})
        self.refused("required oneof field 'data'", {"role": "user", "parts": [{}]})
        self.refused("valid role", {"role": "assistant", "parts": [{"text": "x"}]})
        self.refused("exceeds the maximum number of tokens allowed (100)", {"role": "user", "parts": [{"text": "x" * 1000}]}, window=100)

    def test_signatures(self):
        third = {"model": "gemini-3-pro"}
        signed = self.call("a", thoughtSignature=rules.GEMINI_SIGNATURE)
        self.accepted(self.ask, signed, self.response("a"), **third)
        self.refused("missing a thought_signature", self.ask, self.call("a"), self.response("a"), **third)
        self.refused("Corrupted thought signature", self.ask, self.call("a", thoughtSignature="x"), self.response("a"), **third)
        self.accepted(self.ask, self.call("a"), self.response("a"), self.said, self.ask, **third)  # of an earlier turn


class Served(unittest.TestCase):
    """What the stub answers is a history that it takes, in each API, as JSON and streamed."""

    def setUp(self):
        self.stub = Stub()
        self.addCleanup(self.stub.close)

    def post(self, path, body):
        request = urllib.request.Request(self.stub.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    prompt = "prompt-7: calls=2 rounds=1 chars=300 think"
    schema = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}

    def test_anthropic(self):
        body = {"model": "m", "tools": [{"name": "bash", "input_schema": self.schema}], "messages": [user(text(self.prompt))]}
        _, said = self.post("/v1/messages", body)
        content = json.loads(said)["content"]
        self.assertEqual([b["type"] for b in content], ["thinking", "text", "tool_use", "tool_use"])
        self.assertIn("head -c 300", content[2]["input"]["command"])
        body["messages"] += [assistant(*content), user(*(result(b["id"], "result-7-1-1 the") for b in content[2:]))]
        status, said = self.post("/v1/messages", body)
        self.assertEqual((status, json.loads(said)["content"][-1]["text"]), (200, "reply-7"))
        body["messages"][0]["content"][0]["text"] += "!"
        status, said = self.post("/v1/messages", body)
        self.assertEqual(status, 400)
        self.assertIn("bound to a different conversation", said)
        self.assertEqual(self.stub.log[-1].held()["results"], {"7-1-1"})

    def test_chat(self):
        tools = [{"type": "function", "function": {"name": "bash", "parameters": self.schema}}]
        body = {"model": "m", "tools": tools, "messages": [{"role": "user", "content": self.prompt}]}
        message = json.loads(self.post("/v1/chat/completions", body)[1])["choices"][0]["message"]
        body["messages"] += [message, *({"role": "tool", "tool_call_id": c["id"], "content": "x"} for c in message["tool_calls"])]
        self.assertIn("reply-7", self.post("/v1/chat/completions", body)[1])
        del body["messages"][-1]
        self.assertEqual(self.post("/v1/chat/completions", body)[0], 400)

    def test_responses(self):
        tools = [{"type": "function", "name": "shell", "parameters": self.schema}]
        body = {"model": "m", "tools": tools, "input": [{"role": "user", "content": [{"type": "input_text", "text": self.prompt}]}]}
        output = json.loads(self.post("/v1/responses", body)[1])["output"]
        calls = [item for item in output if item["type"] == "function_call"]
        body["input"] += [*output, *({"type": "function_call_output", "call_id": c["call_id"], "output": "x"} for c in calls)]
        self.assertIn("reply-7", self.post("/v1/responses", body)[1])
        del body["input"][-1]
        self.assertIn("No tool output found for function call", self.post("/v1/responses", body)[1])

    def test_gemini(self):
        path = "/v1beta/models/gemini-3-pro:generateContent"
        tools = [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": self.schema}]}]
        body = {"tools": tools, "contents": [{"role": "user", "parts": [{"text": self.prompt}]}]}
        content = json.loads(self.post(path, body)[1])["candidates"][0]["content"]
        calls = [p["functionCall"] for p in content["parts"] if "functionCall" in p]
        answers = [{"functionResponse": {"name": c["name"], "response": {"output": "x"}}} for c in calls]
        body["contents"] += [content, {"role": "user", "parts": answers}]
        self.assertIn("reply-7", self.post(path, body)[1])
        answers.pop()
        self.assertEqual(self.post(path, body)[0], 400)

    def test_streams(self):
        chat = [{"type": "function", "function": {"name": "bash", "parameters": self.schema}}]
        asked = {
            "/v1/messages": ({"messages": [user(text(self.prompt))], "tools": [{"name": "bash", "input_schema": self.schema}]}, "message_stop"),
            "/v1/chat/completions": ({"messages": [{"role": "user", "content": self.prompt}], "tools": chat}, "[DONE]"),
            "/v1/responses": ({"input": self.prompt, "tools": [{"type": "function", "name": "bash"}]}, "response.completed"),
            "/v1beta/models/m:streamGenerateContent": ({"contents": [{"parts": [{"text": self.prompt}]}], "tools": []}, "finishReason"),
        }
        for path, (body, end) in asked.items():
            status, said = self.post(path, {**body, "model": "m", "stream": True})
            self.assertEqual(status, 200, path)
            self.assertIn(end, said.strip().split("\n\n")[-1], path)

    def test_without_tools_there_is_a_summary(self):
        _, said = self.post("/v1/messages", {"messages": [user(text(f"Summarise: {self.prompt}"))]})
        self.assertIn("<summary>", said)


if __name__ == "__main__":
    unittest.main()
