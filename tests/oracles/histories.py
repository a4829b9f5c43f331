"""Damages a history of Bedrock Converse, LangChain, Pydantic AI, OpenAI's Responses, LlamaIndex and AutoGen in each of the usual ways,
has tailor repair it, and asks the library itself whether it takes the result: botocore's model of the API; LangChain's and Pydantic AI's
loaders, and what these make of it for OpenAI's API; the types of OpenAI's SDK, without other fields; the types of LlamaIndex and AutoGen. In
what is sent each call has to be answered once, directly after it.

python3 histories.py TAILOR    with botocore, langchain-core, pydantic-ai-slim[openai], llama-index-core and autogen-core on the path
"""

import asyncio
import copy
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import botocore.session  # noqa: E402
from autogen_core.models import LLMMessage  # noqa: E402
from botocore.validate import ParamValidator  # noqa: E402
from langchain_core.messages import convert_to_openai_messages, messages_from_dict  # noqa: E402
from llama_index.core.llms import ChatMessage  # noqa: E402
from openai.types.responses import ResponseInputItemParam  # noqa: E402
from pydantic import TypeAdapter  # noqa: E402
from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: E402
from pydantic_ai.models import ModelRequestParameters  # noqa: E402
from pydantic_ai.models.openai import OpenAIChatModel  # noqa: E402
from pydantic_ai.providers.openai import OpenAIProvider  # noqa: E402

ALLOW = "P1,P2,P4,P5,P8"

# A message is who speaks, what is said, the calls, and the results. A call without arguments was cut.
WHOLE = [
    ("user", "list", [], []), ("model", "Looking.", ["t1", "t2"], []), ("user", None, [], ["t1", "t2"]), ("model", "Done.", [], []),
    ("user", "again", [], []), ("model", None, ["t3"], []), ("user", None, [], ["t3"]), ("model", "End.", [], []),
]
RESULTS, AGAIN = ("user", None, [], ["t1", "t2"]), ("user", None, [], ["t9"])

# What befalls it, and the rules that find it.
DAMAGES = {
    "nothing": (lambda told: None, set()),
    "one result lost": (lambda told: told[2][3].pop(0), {"P1"}),
    "both results lost": (lambda told: told.pop(2), {"P1"}),
    "a result lost to a user message": (lambda told: told.__setitem__(6, ("user", "well?", [], [])), {"P1"}),
    "a result too many": (lambda told: told[2][3].append("t9"), {"P2"}),
    "a message of results too many": (lambda told: told.insert(4, AGAIN), {"P2"}),
    "a result twice": (lambda told: told[2][3].append("t1"), {"P5"}),
    "a message of results twice": (lambda told: told.insert(3, copy.deepcopy(RESULTS)), {"P5"}),
    "the result before its call": (lambda told: told.insert(5, told.pop(6)), {"P8"}),
    "a call that was cut": (lambda told: told[5][2].__setitem__(0, "!t3"), {"P9"}),
    "a torn end": (None, {"B1"}),
}


def bedrock(who, said, calls, results):
    uses = [{"toolUse": {"toolUseId": call.strip("!"), "name": "ls", **({} if call[0] == "!" else {"input": {}})}} for call in calls]
    done = [{"toolResult": {"toolUseId": of, "content": [{"text": "a.txt"}], "status": "success"}} for of in results]
    role = "user" if who == "user" else "assistant"
    return [{"role": role, "content": [*([{"text": said}] if said else []), *uses, *done]}]


def langchain(who, said, calls, results):
    uses = [{"name": "ls", "id": call.strip("!"), "type": "tool_call", **({} if call[0] == "!" else {"args": {}})} for call in calls]
    done = [{"type": "tool", "content": "a.txt", "tool_call_id": of, "name": "ls", "status": "success"} for of in results]
    spoken = {"type": "human" if who == "user" else "ai", "content": said or "", **({"tool_calls": uses} if who == "model" else {})}
    return [{"type": body["type"], "data": body} for body in ([] if results else [spoken]) + done]


def pydantic(who, said, calls, results):
    uses = [{"tool_name": "ls", "tool_call_id": call.strip("!"), "part_kind": "tool-call", **({} if call[0] == "!" else {"args": {}})}
            for call in calls]
    done = [{"tool_name": "ls", "content": "a.txt", "tool_call_id": of, "part_kind": "tool-return"} for of in results]
    words = [{"content": said, "part_kind": "user-prompt" if who == "user" else "text"}] if said else []
    return [{"parts": done + words + uses, "kind": "request" if who == "user" else "response"}]


def responses(who, said, calls, results):
    uses = [{"type": "function_call", "call_id": call.strip("!"), "name": "ls", **({} if call[0] == "!" else {"arguments": "{}"})}
            for call in calls]
    done = [{"type": "function_call_output", "call_id": of, "output": "a.txt"} for of in results]
    words = {"role": "user", "content": said} if who == "user" else {
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": said, "annotations": []}]}
    return [*([words] if said else []), *uses, *done]


def llamaindex(who, said, calls, results):
    uses = [{"block_type": "tool_call", "tool_call_id": call.strip("!"), "tool_name": "ls", **({} if call[0] == "!" else {"tool_kwargs": {}})}
            for call in calls]
    text = lambda said: {"block_type": "text", "text": said}
    done = [{"role": "tool", "additional_kwargs": {"tool_call_id": of, "name": "ls"}, "blocks": [text("a.txt")]} for of in results]
    blocks = [*([text(said)] if said else []), *uses]
    spoken = {"role": "user" if who == "user" else "assistant", "additional_kwargs": {}, "blocks": blocks}
    return ([] if results else [spoken]) + done


def autogen(who, said, calls, results):
    uses = [{"id": call.strip("!"), "name": "ls", **({} if call[0] == "!" else {"arguments": "{}"})} for call in calls]
    done = [{"content": "a.txt", "name": "ls", "call_id": of, "is_error": False} for of in results]
    if done:
        return [{"content": done, "type": "FunctionExecutionResultMessage"}]
    kind = "UserMessage" if who == "user" else "AssistantMessage"
    return [{"content": uses or said, **({"thought": said} if uses else {}), "source": who, "type": kind}]


def of_bedrock(rows):
    """What the API gets: groups of calls and of results, in order."""
    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    report = ParamValidator().validate({"modelId": "m", "messages": rows}, service.operation_model("Converse").input_shape)
    if report.has_errors():
        raise ValueError(report.generate_report())
    ids = lambda row, kind: [block[kind]["toolUseId"] for block in row["content"] if kind in block]
    return [(ids(row, "toolUse"), ids(row, "toolResult")) for row in rows if row["content"]]


def of_openai(messages):
    groups = []
    for message in messages:
        done = [message["tool_call_id"]] if message["role"] == "tool" else []
        if done and groups and groups[-1][1]:
            groups[-1][1].extend(done)
        else:
            groups.append(([call["id"] for call in message.get("tool_calls") or []], done))
    return groups


def of_langchain(rows):
    return of_openai(convert_to_openai_messages(messages_from_dict(rows)))


def of_pydantic(rows):
    model = OpenAIChatModel("m", provider=OpenAIProvider(api_key="none"))
    messages = ModelMessagesTypeAdapter.validate_python(rows)
    return of_openai(asyncio.run(model._map_messages(messages, ModelRequestParameters())))


def of_llamaindex(rows):
    """As its model for OpenAI's API has it: blocks are calls, and a result names its call beside them."""
    sent = []
    for message in map(ChatMessage.model_validate, rows):
        calls = [{"id": block.tool_call_id} for block in message.blocks if block.block_type == "tool_call"]
        sent.append({"role": message.role.value, "tool_calls": calls, **message.additional_kwargs})
    return of_openai(sent)


def of_autogen(rows):
    """As its model for OpenAI's API has it: each result is a message."""
    sent = []
    for message in TypeAdapter(list[LLMMessage]).validate_python(rows):
        parts = message.content if isinstance(message.content, list) else []
        if message.type == "FunctionExecutionResultMessage":
            sent += [{"role": "tool", "tool_call_id": result.call_id} for result in parts]
        else:
            sent.append({"role": message.type, "tool_calls": [{"id": call.id} for call in parts]})
    return of_openai(sent)


def of_responses(rows):
    """Calls may stand side by side, as may outputs."""
    items = TypeAdapter(list[ResponseInputItemParam]).validate_python(rows, extra="forbid")
    groups = []
    for item in items:
        call, done = item.get("type") == "function_call", item.get("type") == "function_call_output"
        if groups and (call and not groups[-1][1] or done and groups[-1][1]):
            groups[-1][done].append(item.get("call_id"))
        else:
            groups.append(([item.get("call_id")] * call, [item.get("call_id")] * done))
    return groups


# How a message is written, and what the library sends of the rows.
DIALECTS = {
    "bedrock-converse": (bedrock, of_bedrock),
    "langchain": (langchain, of_langchain),
    "pydantic-ai": (pydantic, of_pydantic),
    "openai-responses": (responses, of_responses),
    "llamaindex": (llamaindex, of_llamaindex),
    "autogen": (autogen, of_autogen),
}
# Whether the API goes by the order of a call and its output is not known.
UNKNOWN = {("openai-responses", "the result before its call")}


def refusal(rows, sent):
    """Why the API would refuse the messages; None if it would not."""
    try:
        groups = sent(rows)
    except Exception as error:  # whatever a library says
        return f"{type(error).__name__}: {error}"
    for (_, _), (calls, _), (_, results) in zip([([], []), *groups], groups, [*groups[1:], ([], [])]):
        if sorted(calls) != sorted(results):
            return f"calls {calls} are followed by results {results}"
    return "a result comes first" if groups[0][1] else None


def repaired(tailor, written, folder):
    """The rules that find something, and the messages after the repair."""
    path = Path(folder) / "s.jsonl"
    path.write_text(written)
    run = lambda *words: subprocess.run([tailor, *words, str(path)], capture_output=True, text=True, check=False).stdout
    file = json.loads(run("scan", "--json").splitlines()[0])
    run("fix", "--settle", "0", "--allow", ALLOW, "--vault", f"{folder}/vault")
    return file["format"], {found["code"] for found in file["findings"]}, [json.loads(line) for line in path.read_text().splitlines()]


def check(tailor, dialect, damage, expected):
    """What is not as it should be; None if all is."""
    spell, sent = DIALECTS[dialect]
    told = copy.deepcopy(WHOLE)
    if damage:
        damage(told)
    written = "".join(json.dumps(row) + "\n" for message in told for row in spell(*message))
    if not damage:
        # The last line is the model's: whoever reads the rest goes on from there.
        written += json.dumps(spell("user", "and?", [], [])[0])[:-20]
    with tempfile.TemporaryDirectory() as folder:
        found, codes, rows = repaired(tailor, written, folder)
    if (found, codes) != (dialect, expected):
        return f"taken for {found}, found {sorted(codes)}"
    return refusal(rows, sent)


def main():
    wrong = 0
    for dialect in DIALECTS:
        bad = {name: check(sys.argv[1], dialect, *damage) for name, damage in DAMAGES.items() if (dialect, name) not in UNKNOWN}
        count = len(bad)
        bad = {name: why for name, why in bad.items() if why}
        for name, why in bad.items():
            print(f"{dialect}, {name}: {why}")
        print(f"{dialect}: {count - len(bad)} of {count} damaged histories are found, mended and taken by its library")
        wrong += len(bad)
    sys.exit(wrong > 0)


main()
