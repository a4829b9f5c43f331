// Appends a pi session's entries as pi does: one `fs.appendFileSync` an entry.
//
//   node append.mjs SESSION LOG NAME SEED
//
// Goes turn by turn: prints `?`, waits for a line on standard input, appends one entry, puts it into the log, prints
// `.`. The end of the input ends it, after the last result has been answered. The log has a line an entry: its id, a
// tab, and the line as it was appended, or nothing where a fix may shorten it.

import fs from "node:fs";

const [session, log, name, seed] = process.argv.slice(2);
const RESULT_CHARS_MAX = 200;
const ROW = 'row of "naïve" output → 🚀\tdone\n';

let state = Number(seed) >>> 0 || 1;
const below = (limit) => {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % limit;
};

const text = (id, rows) => [{ type: "text", text: `${id} ${ROW.repeat(rows)}` }];

const message = (id, number) => {
  const call = `call-${name}-${Math.floor(number / 4)}`;
  switch (number % 4) {
    case 0:
      return { role: "user", content: text(id, below(10)) };
    case 1: {
      const block = { type: "toolCall", id: call, name: "bash", arguments: { command: "make" } };
      return { role: "assistant", content: [...text(id, below(3)), block], model: "m", stopReason: "toolUse" };
    }
    case 2: {
      const rows = below(3) === 0 ? 20 + below(100) : below(5);
      return { role: "toolResult", toolCallId: call, toolName: "bash", content: text(id, rows), isError: false };
    }
    default:
      return { role: "assistant", content: text(id, below(10)), model: "m", stopReason: "stop" };
  }
};

const mayBeCut = (entry) =>
  entry.role === "toolResult" && [...entry.content[0].text].length > RESULT_CHARS_MAX;

let parentId = "root";
const append = (number) => {
  const id = `${name}-${String(number).padStart(6, "0")}`;
  const timestamp = new Date().toISOString();
  const entry = { type: "message", id, parentId, timestamp, message: message(id, number) };
  const line = JSON.stringify(entry);
  fs.appendFileSync(session, line + "\n");
  fs.appendFileSync(log, `${id}\t${mayBeCut(entry.message) ? "" : line}\n`);
  parentId = id;
};

const input = Buffer.alloc(64);
for (let number = 0; ; number++) {
  fs.writeSync(1, "?\n");
  const ended = fs.readSync(0, input) === 0;
  if (ended && number % 4 === 0) break;
  append(number);
  if (!ended) fs.writeSync(1, ".\n");
}
