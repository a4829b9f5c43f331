"""Damages a history of Bedrock Converse in each of the usual ways, has tailor repair it, and asks botocore's model of the API whether it
takes the result, and whether each call is answered once, in the next message.

python3 converse.py TAILOR    with botocore on the path
"""

import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import botocore.session
from botocore.validate import ParamValidator

ALLOW = "P1,P2,P5"


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def model(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def text(said):
    return {"text": said}


def call(name):
    return {"toolUse": {"toolUseId": name, "name": "ls", "input": {}}}


def result(name):
    return {"toolResult": {"toolUseId": name, "content": [text("a.txt")], "status": "success"}}


WHOLE = [
    user(text("list")), model(text("Looking."), call("t1"), call("t2")), user(result("t1"), result("t2")), model(text("Done.")),
    user(text("again")), model(call("t3")), user(result("t3")), model(text("End.")),
]

# What befalls it, and the rules that find it.
DAMAGES = {
    "nothing": (lambda rows: None, set()),
    "one result lost": (lambda rows: rows[2]["content"].pop(0), {"P1"}),
    "both results lost": (lambda rows: rows.pop(2), {"P1"}),
    "a result lost to a user message": (lambda rows: rows.__setitem__(6, user(text("well?"))), {"P1"}),
    "a result too many": (lambda rows: rows[2]["content"].append(result("t9")), {"P2"}),
    "a message of results too many": (lambda rows: rows.insert(4, user(result("t9"))), {"P2"}),
    "a result twice": (lambda rows: rows[2]["content"].append(result("t1")), {"P5"}),
    "a message of results twice": (lambda rows: rows.insert(3, copy.deepcopy(rows[2])), {"P5"}),
    "the result before its call": (lambda rows: rows.insert(5, rows.pop(6)), {"P8"}),
    "a call that was cut": (lambda rows: rows[5]["content"][0]["toolUse"].pop("input"), {"P9"}),
    "an empty text": (lambda rows: rows[1]["content"].insert(0, text(" ")), {"M2"}),
    "a torn end": (None, {"B1"}),
}


def ids(message, kind):
    return [block[kind]["toolUseId"] for block in message["content"] if kind in block]


def refusal(messages, shape):
    """Why the API would refuse the messages; None if it would not."""
    report = ParamValidator().validate({"modelId": "m", "messages": messages}, shape)
    if report.has_errors():
        return report.generate_report()
    nothing = user()
    for before, message, after in zip([nothing, *messages], messages, [*messages[1:], nothing]):
        blank = any(not block.get("text", "x").strip() for block in message["content"])
        if blank or not message["content"]:
            return "something is empty"
        if sorted(ids(message, "toolUse")) != sorted(ids(after, "toolResult")):
            return "calls and results do not pair"
        if not set(ids(message, "toolResult")) <= set(ids(before, "toolUse")):
            return "a result without a call"
    return None


def repaired(tailor, written, folder):
    """The rules that find something, and the messages after the repair."""
    path = Path(folder) / "s.jsonl"
    path.write_text(written)
    run = lambda *words: subprocess.run([tailor, *words, str(path)], capture_output=True, text=True, check=False).stdout
    codes = {found["code"] for found in json.loads(run("scan", "--json").splitlines()[0])["findings"]}
    run("fix", "--settle", "0", "--allow", ALLOW, "--vault", f"{folder}/vault")
    return codes, [json.loads(line) for line in path.read_text().splitlines()]


def main():
    tailor, wrong = sys.argv[1], 0
    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    shape = service.operation_model("Converse").input_shape
    for name, (damage, expected) in DAMAGES.items():
        rows = copy.deepcopy(WHOLE)
        if damage:
            damage(rows)
        written = "".join(json.dumps(row) + "\n" for row in rows)
        if not damage:
            # The last line is the model's: whoever reads the rest goes on from there.
            written += json.dumps(user(text("and?")))[:-20]
        with tempfile.TemporaryDirectory() as folder:
            codes, messages = repaired(tailor, written, folder)
        why = refusal(messages, shape) or (codes != expected and f"found {sorted(codes)}")
        wrong += bool(why)
        if why:
            print(f"bedrock-converse, {name}: {why}")
    print(f"bedrock-converse: {len(DAMAGES) - wrong} of {len(DAMAGES)} damaged histories are found, mended and taken by botocore")
    sys.exit(wrong > 0)


main()
