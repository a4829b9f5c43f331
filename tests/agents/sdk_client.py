"""Talks to Claude Code through claude-agent-sdk, run by the Python that has it.

    sdk_client.py MODEL [-c] PROMPT     one prompt
    sdk_client.py MODEL                 a prompt a line on standard input, as stream-json; one client for all of them
"""

import asyncio
import json
import sys

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient


async def main(model, prompts, resume):
    options = ClaudeAgentOptions(model=model, permission_mode="bypassPermissions", continue_conversation=resume)
    async with ClaudeSDKClient(options=options) as client:
        async for prompt in prompts:
            await client.query(prompt)
            async for _ in client.receive_response():
                pass
            print(json.dumps({"type": "result"}), flush=True)


async def given(prompt):
    yield prompt


async def lines():
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield json.loads(line)["message"]["content"]


if __name__ == "__main__":
    model, *rest = sys.argv[1:]
    asyncio.run(main(model, given(rest[-1]) if rest else lines(), "-c" in rest))
