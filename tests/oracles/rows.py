"""Asks trainers' own code which rows it takes, and holds `tailor scan --for TRAINER` against that.

`rows.py TAILOR PACKAGES`: PACKAGES holds the packages of the trainers, unpacked, each in a folder of its name; what they stand on (torch,
transformers) is not there, and stands for nothing. A row that Tailor says is refused must be refused; one that is refused must at
least be one that may be. Where `COOKBOOK` names a checkout of openai-cookbook, its notebook is asked as well.
"""

import copy
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import types
from collections import defaultdict
from pathlib import Path

TAILOR, PACKAGES = sys.argv[1], Path(sys.argv[2])


# --- what is not installed: modules and names that stand for nothing ---


class Nothing(type):
    """A class of which every attribute is another one, and that can be called, subscripted and joined."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return nothing(name)

    def __getitem__(cls, _):
        return cls

    def __iter__(cls):
        return iter(())

    def __or__(cls, _):
        return cls

    __ror__ = __or__


def nothing(name="nothing"):
    return Nothing(name, (), {"__init__": lambda self, *_, **__: None, "__call__": lambda self, *_, **__: None, "__getattr__": lambda self, _: nothing()})


class NothingModule(types.ModuleType):
    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return nothing(name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds whatever nobody else does."""

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return NothingModule(spec.name)

    def exec_module(self, module):
        pass


def load(name, path):
    """One file of a package, under its name; its neighbours stand for nothing unless they were loaded before."""
    spec = importlib.util.spec_from_file_location(name, PACKAGES / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# --- the trainers: each says whether it takes a row ---


def together(row):
    os.environ["TOGETHER_DISABLE_TQDM"] = "true"
    from together.lib.utils.files import check_file

    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as file:
        file.write(json.dumps(row) + "\n")
    try:
        return check_file(file.name)["is_check_passed"]
    finally:
        os.unlink(file.name)


def llamafactory():
    load("llamafactory.data.data_utils", "llamafactory/llamafactory/data/data_utils.py")
    converter = load("llamafactory.data.converter", "llamafactory/llamafactory/data/converter.py")
    parser = load("llamafactory.data.parser", "llamafactory/llamafactory/data/parser.py")

    def takes(row):
        is_pair = isinstance(row.get("chosen"), dict) and isinstance(row.get("rejected"), dict)
        named = {"ranking": is_pair, "chosen": "chosen", "rejected": "rejected"}
        if "messages" in row:
            named |= {"formatting": "openai", "messages": "messages", "role_tag": "role", "content_tag": "content"}
            named |= {"user_tag": "user", "assistant_tag": "assistant", "observation_tag": "tool"}
        else:
            named |= {"formatting": "sharegpt", "messages": "conversations"}
        attr = parser.DatasetAttr(load_from="file", dataset_name="rows")
        for name, value in named.items():
            setattr(attr, name, value)
        made = converter.get_dataset_converter(attr.formatting, attr, None)(row)
        return bool(made["_prompt"] and made["_response"])

    return takes


def axolotl():
    module = load("axolotl.prompt_strategies.chat_template", "axolotl/axolotl/prompt_strategies/chat_template.py")

    class Prompter(module.ChatTemplatePrompter):
        def get_chat_template_msg_variables(self, *_):
            return {"tool_calls", "tool_call_id", "name"}

    def takes(row):
        column = "messages" if "messages" in row else "conversations"
        fields = {"role": "from", "content": "value"} if "from" in json.dumps(row) else None
        strategy = object.__new__(module.ChatTemplateStrategy)
        strategy.split_thinking = False
        strategy.prompter = Prompter(tokenizer=None, chat_template="", field_messages=column, message_property_mappings=fields)
        turns = strategy.get_conversation_thread(row)
        strategy._get_tools(row)
        return any(turn.get("role") == "assistant" for turn in turns)

    return takes


def trl():
    module = load("trl.data_utils", "trl/trl/data_utils.py")
    texts = [{"text"}, {"prompt"}, {"prompt", "completion"}, {"prompt", "chosen", "rejected"}, {"chosen", "rejected"}]

    class Template:
        def apply_chat_template(self, messages, **_):
            return "".join(message["role"] + str(message.get("content")) for message in messages)

    def takes(row):
        text = {name for name, value in row.items() if isinstance(value, str)} - {"messages"}
        if not module.is_conversational(row):
            return any(some <= text for some in texts)
        return module.apply_chat_template(row, Template())

    return takes


def swift():
    template = load("swift.template.template_inputs", "ms_swift/swift/template/template_inputs.py")
    core = load("swift.dataset.preprocessor.core", "ms_swift/swift/dataset/preprocessor/core.py")
    core.normalize_openai_tool_calls = template.normalize_openai_tool_calls

    def takes(row):
        columns = {"conversations": "messages", "conversation": "messages"}
        batch = {columns.get(name, name): [value] for name, value in row.items()}
        made = core.MessagesPreprocessor().batched_preprocess(batch, strict=True, ignore_max_length_error=True)
        return bool(made["messages"])

    return takes


def cookbook():
    cells = json.loads((Path(os.environ["COOKBOOK"]) / "examples/Chat_finetuning_data_prep.ipynb").read_text())["cells"]
    code = next("".join(cell["source"]) for cell in cells if "format_errors = defaultdict" in "".join(cell["source"]))

    def takes(row):
        # Its print stands in the way, and it knows neither tools nor pairs.
        said = {"dataset": [row], "defaultdict": defaultdict, "print": lambda *_: None}
        exec(code, said)
        return not said["format_errors"]

    return takes


# --- rows: some that are sound, and each with each thing that may be wrong ---

SYSTEM, USER, SAYS = ({"role": role, "content": text} for role, text in [("system", "be brief"), ("user", "hi"), ("assistant", "yes")])
CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]}
GIVES = {"role": "tool", "tool_call_id": "c", "content": "a.txt"}
TOOLS = [{"type": "function", "function": {"name": "ls", "description": "lists", "parameters": {"type": "object", "properties": {}}}}]
NAMES = {"system": "system", "user": "human", "assistant": "gpt", "tool": "observation"}


def sharegpt(messages):
    """The same in ShareGPT's words."""
    own = [{"from": NAMES[message["role"]], "value": message["content"]} for message in messages]
    calls = [message.get("tool_calls") for message in messages]
    return [{"from": "function_call", "value": '{"name":"ls","arguments":{}}'} if call else turn for turn, call in zip(own, calls)]


def sound():
    for messages in [[USER, SAYS], [SYSTEM, USER, SAYS], [USER, SAYS, USER, SAYS], [USER, CALL, GIVES, SAYS], [USER, CALL, GIVES, GIVES, SAYS]]:
        tools = {"tools": TOOLS} if CALL in messages else {}
        yield {"messages": messages, **tools}
        yield {"conversations": sharegpt(messages), **{name: json.dumps(value) for name, value in tools.items()}}
    yield {"input": {"messages": [USER]}, "preferred_output": [SAYS], "non_preferred_output": [{**SAYS, "content": "no"}]}
    yield {"conversations": sharegpt([USER]), "chosen": sharegpt([SAYS])[0], "rejected": {"from": "gpt", "value": "no"}}
    yield {"messages": [USER, SAYS], "rejected_response": "no"}
    yield {"chosen": [USER, SAYS], "rejected": [USER, {**SAYS, "content": "no"}]}
    yield {"prompt": [USER], "completion": [SAYS]}
    yield {"text": "hi"}


def damaged(row):
    """The row with one thing changed."""
    for column, value in row.items():
        yield {name: own for name, own in row.items() if name != column}
        yield {**row, column: None}
        yield {**row, column: json.dumps(value)}
        yield {**row, "source": "web"}
        if column == "tools" or not (isinstance(value, list) and value and isinstance(value[0], dict)):
            continue
        if column in ("messages", "conversations"):
            yield {**row, column: []}
            yield {**row, column: ["text"]}
        for at in range(len(value)):
            yield {**row, column: value[:at] + value[at + 1 :]}
            yield {**row, column: value[: at + 1] + value[at:]}
            yield {**row, column: value[:at] + value[at:][::-1]}
            for name in list(value[at]):
                for other in [None, "", "bad", 1]:
                    yield {**row, column: [*value[:at], {**value[at], name: other}, *value[at + 1 :]]}
                lacks = {own: inner for own, inner in value[at].items() if own != name}
                yield {**row, column: [*value[:at], lacks, *value[at + 1 :]]}
            for weight in [0, 1, 2, 0.5, None, "1"]:
                yield {**row, column: [*value[:at], {**value[at], "weight": weight}, *value[at + 1 :]]}
    if "input" in row:
        yield {**row, "input": {"messages": [USER, SAYS]}}
        yield {**row, "input": {}}
    if "rejected_response" in row:
        yield {**row, "rejected_response": "yes"}
        yield {**row, "rejected_response": None}


def rows():
    seen = {}
    for row in sound():
        for some in [row, *damaged(row)]:
            seen.setdefault(json.dumps(some), some)
    return list(seen.values())


# --- the comparison ---

# Fields are of the type that they have everywhere, or null: what a trainer does with a number in the place of a name is its own matter.
def is_plain(row):
    for messages in row.values():
        for message in messages if isinstance(messages, list) else []:
            names = ("role", "from", "tool_call_id") if isinstance(message, dict) else ()
            if not all(isinstance(message.get(name, ""), str) for name in names):
                return False
            if isinstance(message, dict) and not isinstance(message.get("tool_calls") or [], list):
                return False
    return True


def says_texts(row):
    messages = row.get("messages") or row.get("conversations")
    messages = [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []
    return all(isinstance(message.get(name, ""), str) for message in messages for name in ("content", "value"))


def verdicts(trainer, all_rows):
    """What Tailor says of each row: refused, may-be-refused or nothing."""
    text = "".join(json.dumps(row) + "\n" for row in all_rows)
    done = subprocess.run([TAILOR, "scan", "--for", trainer, "--json", "-"], input=text, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    said = defaultdict(set)
    for objection in report["row_objections"]:
        for row in objection["rows"]:
            said[row - 1].add((objection["group"], objection["about"]))
    return said


def compare(trainer, takes, reads):
    all_rows = [row for row in rows() if is_plain(row) and reads(row)]
    said, wrong, refused = verdicts(trainer, all_rows), [], 0
    for n, row in enumerate(all_rows):
        try:
            taken = bool(takes(copy.deepcopy(row)))
        except Exception:  # however it ends, the row is not taken
            taken = False
        refused += not taken
        certain = any(group == "refused" for group, _ in said[n])
        if (taken and certain) or not (taken or said[n]):
            wrong.append(f"{trainer} {'takes' if taken else 'refuses'}: {json.dumps(row)}\n  Tailor: {sorted(said[n]) or 'nothing'}")
    print("\n".join([f"{trainer}: {len(all_rows)} rows, {refused} of them refused, {len(wrong)} judged otherwise", *wrong]), flush=True)
    return wrong


def main():
    wrong = []
    if importlib.util.find_spec("together"):
        wrong += compare("together", together, lambda row: True)
    else:
        print("SKIPPED: together is not installed; its rows were not checked")
    sys.meta_path.append(Finder())
    for trainer, reads in [
        (llamafactory, lambda row: ("conversations" in row or "messages" in row) and says_texts(row)),
        # Pairs have strategies of their own there.
        (axolotl, lambda row: ("conversations" in row or "messages" in row) and "rejected" not in row),
        # Columns are of one type, and a row has none that is empty or null: Arrow and its owner see to that.
        (trl, lambda row: type(row.get("chosen")) is type(row.get("rejected")) and type(row.get("completion") or 0) is type(row.get("prompt") or 0)),
        (swift, lambda row: "conversations" in row or "messages" in row),
    ]:
        wrong += compare(trainer.__name__, trainer(), reads)
    if "COOKBOOK" in os.environ:
        # What it is older than, or does not look at.
        known = lambda row: "messages" in row and not any(word in json.dumps(row) for word in ("tool", "weight"))
        wrong += compare("openai-finetune", cookbook(), known)
    else:
        print("SKIPPED: COOKBOOK names no checkout of openai-cookbook; rows for OpenAI were not checked")
    print("SKIPPED: fireworks (no code of its checks is published) and verl (needs a tokenizer)")
    sys.exit(bool(wrong))


main()
