// Reads sessions with pi's own SessionManager, and does nothing else.
//
//   node read_pi.mjs PACKAGES < PATHS
//
// Of each path, one a line, it writes to PATH.read what pi would send, as JSON: {"messages": [{"id", "message"}],
// "settings"}, with the id of the entry that a message is from; or {"problem"}, if pi cannot load the file.

import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const entry = join(process.argv[2], "node_modules/@mariozechner/pi-coding-agent/dist/index.js");
const { SessionManager } = await import(pathToFileURL(entry).href);
const folder = mkdtempSync(join(tmpdir(), "read-pi-"));

const parse = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

function read(path) {
  const header = readFileSync(path, "utf8").trim().split("\n").map(parse).find((line) => line !== undefined);
  // Without one pi writes a new one over the file, and throws nothing.
  if (header?.type !== "session" || typeof header.id !== "string") {
    return { problem: "no session header on the first readable line" };
  }
  const copy = join(folder, "session.jsonl");
  copyFileSync(path, copy); // pi rewrites what it cannot read and what is of an older version
  const manager = SessionManager.open(copy);

  // pi follows parents without looking for circles.
  const seen = new Set();
  for (let e = manager.getLeafEntry(); e; e = e.parentId ? manager.getEntry(e.parentId) : undefined) {
    if (seen.has(e)) return { problem: "the parents of an entry form a circle" };
    seen.add(e);
  }
  // In the first version entries have no ids, and pi invents some.
  const named = (header.version ?? 1) >= 2;
  const ids = new Map([...seen].map((e) => [e.message, named ? e.id : null]));
  const { messages, ...settings } = manager.buildSessionContext();
  return { messages: messages.map((message) => ({ id: ids.get(message) ?? null, message })), settings };
}

try {
  for (const path of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
    let said;
    try {
      said = read(path);
    } catch (error) {
      said = { problem: error.message };
    }
    writeFileSync(`${path}.read`, JSON.stringify(said));
  }
} finally {
  rmSync(folder, { recursive: true });
}
