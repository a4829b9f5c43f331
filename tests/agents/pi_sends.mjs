// What pi sends of sessions, by its own functions: `node pi_sends.mjs FOLDER_OF_THE_PACKAGES FILE …` prints a JSON list for
// each file, of `t:` texts, `c:` calls and `r:` results. Summaries and results that pi makes up are left out.

import { readFileSync } from "node:fs";

const [base, ...files] = process.argv.slice(2);
const { parseSessionEntries, migrateSessionEntries, buildSessionContext } = await import(`${base}/pi-coding-agent/dist/core/session-manager.js`);
const { convertToLlm } = await import(`${base}/pi-coding-agent/dist/core/messages.js`);
const { transformMessages } = await import(`${base}/pi-ai/dist/api/transform-messages.js`);
const model = { id: "claude-opus-4-5", provider: "anthropic", api: "anthropic-messages", input: ["text", "image"] };

for (const file of files) {
  const all = parseSessionEntries(readFileSync(file, "utf8"));
  migrateSessionEntries(all);
  const entries = all.filter((entry) => entry.type !== "session");
  const { messages } = buildSessionContext(entries, entries.at(-1).id);
  const own = messages.filter((message) => message.role !== "compactionSummary" && message.role !== "branchSummary");
  const sent = new Set();
  for (const { role, toolCallId, content } of transformMessages(convertToLlm(own), model)) {
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    if (role === "toolResult") {
      if (blocks[0]?.text !== "No result provided") sent.add(`r:${toolCallId}`);
      continue;
    }
    for (const block of blocks) sent.add(block.type === "toolCall" ? `c:${block.id}` : `t:${block.text.trim()}`);
  }
  console.log(JSON.stringify([...sent].sort()));
}
