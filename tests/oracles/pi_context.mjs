// Asks pi itself whether a repaired session still gives the model the same context.
//
//   node pi_context.mjs BEFORE.jsonl AFTER.jsonl FINDINGS.jsonl
//
// Loads both files with pi's SessionManager and compares the messages. They must be equal, but for
// texts cut at a marker and for what the findings (`tailor fix --format json`) account for.
// Exit 0: equal. 1: the first difference, explained. 77: skipped, because pi cannot load BEFORE
// or because a named repair is meant to change the context.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const PAIRING = /^P[1-8]$/; // may add, remove or move the results of the calls they name
const DROPS_CALLS = /^(P3|P6)$/; // may also remove the call itself
const EMPTIES = /^(P3|P6|M1|M4)$/; // may leave an assistant message with nothing in it
const REWIRES = /^(B8|B10|T[1-4])$/; // make pi see entries that it could not reach before
const MARKER = /\[tailor: \d+ of \d+ chars omitted; full text: tailor show [0-9a-f]{8,64}\]/g;

class Stop extends Error {
  constructor(code, text) {
    super(text);
    this.code = code;
  }
}
const fail = (text) => {
  throw new Stop(1, `FAILED: ${text}`);
};
const skip = (text) => {
  throw new Stop(77, `skipped: ${text}`);
};

// ---- loading -----------------------------------------------------------------------------------

function parses(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The index after the object that starts at `from`, or -1 if it does not end. */
function objectEnd(text, from) {
  let depth = 0;
  let inString = false;
  for (let i = from; i < text.length; i++) {
    const c = text[i];
    if (inString) {
      if (c === "\\") i++;
      else if (c === '"') inString = false;
    } else if (c === '"') inString = true;
    else if (c === "{") depth++;
    else if (c === "}" && --depth === 0) return i + 1;
  }
  return -1;
}

/** The whole objects on a damaged line; fragments between them are left out. */
function unglue(line) {
  const pieces = [];
  let from = line.indexOf("{");
  while (from >= 0) {
    const end = objectEnd(line, from);
    const rest = end < 0 ? "" : line.slice(end).trimStart();
    if (end > 0 && (rest === "" || rest.startsWith("{")) && parses(line.slice(from, end))) {
      pieces.push(line.slice(from, end));
      from = line.indexOf("{", end);
    } else {
      from = line.indexOf('{"', from + 1);
    }
  }
  return pieces;
}

/** What BEFORE would say if its damaged lines (B2 glued, B3 NULs) were readable. */
function readable(text, mended) {
  if (mended("B3")) text = text.replaceAll("\0", "");
  if (!mended("B2")) return text;
  return text
    .split("\n")
    .flatMap((line) => (line.trim() === "" || parses(line) ? [line] : unglue(line)))
    .join("\n");
}

/** pi rewrites what it cannot read and what is of an older version, so it only gets copies. */
function load(SessionManager, folder, name, text) {
  const first = text.trim().split("\n").find(parses) ?? "null";
  const header = JSON.parse(first);
  if (header?.type !== "session" || typeof header.id !== "string") {
    return { problem: "no session header on the first readable line" };
  }
  const path = join(folder, name);
  writeFileSync(path, text);
  let manager;
  try {
    manager = SessionManager.open(path);
  } catch (error) {
    return { problem: error.message };
  }

  // pi follows parents without looking for circles.
  const seen = new Set();
  for (let e = manager.getLeafEntry(); e; e = e.parentId ? manager.getEntry(e.parentId) : undefined) {
    if (seen.has(e)) return { problem: `the parents of ${e.id} form a circle` };
    seen.add(e);
  }
  return manager.buildSessionContext();
}

/** Lone surrogates become U+FFFD. */
function wellFormed(value) {
  return JSON.parse(JSON.stringify(value), (_, v) => (typeof v === "string" ? v.toWellFormed() : v));
}

// ---- comparing ---------------------------------------------------------------------------------

/** Is `after` what is left of `before` when a middle part gives way to a marker? */
function isCut(before, after) {
  for (const m of after.matchAll(MARKER)) {
    const head = after.slice(0, m.index);
    const tail = after.slice(m.index + m[0].length);
    const heads = head.endsWith("\n") ? [head, head.slice(0, -1)] : [head];
    const tails = tail.startsWith("\n") ? [tail, tail.slice(1)] : [tail];
    for (const h of heads) {
      for (const t of tails) {
        if (h.length + t.length <= before.length && before.startsWith(h) && before.endsWith(t)) return true;
        // BEFORE was cut earlier: compare up to its own markers.
        for (const old of before.matchAll(MARKER)) {
          const oldHead = before.slice(0, old.index).trimEnd();
          const oldTail = before.slice(old.index + old[0].length).trimStart();
          const headFits = h.startsWith(oldHead) || oldHead.startsWith(h);
          const tailFits = t.endsWith(oldTail) || oldTail.endsWith(t);
          if (headFits && tailFits) return true;
        }
      }
    }
  }
  return false;
}

function show(value) {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 160 ? `${text.slice(0, 160)}… (${text.length} chars)` : text;
}

function differ(where, before, after, why = "differs") {
  if (typeof before === "string" && typeof after === "string") {
    let at = 0;
    while (at < before.length && before[at] === after[at]) at++;
    const from = Math.max(0, at - 20);
    why += ` from char ${at} of ${before.length} (after: ${after.length})`;
    [before, after] = [before.slice(from, at + 80), after.slice(from, at + 80)];
  }
  fail(`${where} ${why}\n  before: ${show(before)}\n  after:  ${show(after)}`);
}

/** Deep equality; `mayCut(where)` names the string leaves that may have been cut. */
function same(where, before, after, mayCut = () => false) {
  if (before === after) return;
  if (typeof before === "string" && typeof after === "string") {
    if (mayCut(where) && isCut(before, after)) {
      cuts++;
      return;
    }
    differ(where, before, after, mayCut(where) ? "differs and is no cut at a marker" : "differs");
  }
  if (!before || !after || typeof before !== "object" || typeof after !== "object") differ(where, before, after);
  if (Array.isArray(before) !== Array.isArray(after)) differ(where, before, after);
  const keys = Object.keys(before);
  const other = Object.keys(after);
  if (keys.length !== other.length || !keys.every((k) => Object.hasOwn(after, k))) {
    differ(where, keys, other, "has other keys");
  }
  for (const key of keys) {
    same(Array.isArray(before) ? `${where}[${key}]` : `${where}.${key}`, before[key], after[key], mayCut);
  }
}

const CUTTABLE = {
  toolResult: /^\.(content(\[\d+\]\.(text|content))?|details\b.*)$/,
  bashExecution: /^\.output$/,
};
const isThinking = (block) => block?.type === "thinking" || block?.type === "redacted_thinking";
const isCall = (block) => block?.type === "toolCall";
const blocks = (message) => (Array.isArray(message.content) ? message.content : []);

function sameMessage(where, before, after, thinkingMayGo) {
  if (thinkingMayGo && before.role === "assistant" && Array.isArray(before.content)) {
    const left = [...blocks(after)];
    const content = before.content.filter((block) => {
      const kept = left.length > 0 && JSON.stringify(left[0]) === JSON.stringify(block);
      if (kept || !isThinking(block)) left.shift();
      return kept || !isThinking(block);
    });
    before = { ...before, content };
  }
  const cuttable = CUTTABLE[before.role];
  same(where, before, after, (path) => cuttable?.test(path.slice(where.length)) ?? false);
}

// ---- the check ---------------------------------------------------------------------------------

let cuts = 0;

async function main([beforePath, afterPath, findingsPath]) {
  if (!findingsPath) throw new Stop(2, "usage: node pi_context.mjs BEFORE.jsonl AFTER.jsonl FINDINGS.jsonl");
  const report = readFileSync(findingsPath, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const file = report.find((line) => line.type === "file");
  if (!file) fail("the findings have no line of type \"file\"");
  const findings = file.findings ?? [];
  const has = (codes) => findings.some((f) => codes.test(f.code));
  const mended = (code) => findings.some((f) => f.code === code && !/guarded|held|none/.test(f.fix ?? ""));
  const named = (codes) => new Set(findings.filter((f) => codes.test(f.code) && f.call).map((f) => f.call));

  const beforeBytes = readFileSync(beforePath);
  const afterBytes = readFileSync(afterPath);
  if (file.outcome !== "fixed" && !beforeBytes.equals(afterBytes)) {
    fail(`outcome is ${file.outcome}, but the bytes changed`);
  }

  // The package is installed by `run`, not beside this file, so it is named by its path.
  const packages = process.env.ORACLES ?? fileURLToPath(new URL("../../target/oracles", import.meta.url));
  const entry = join(packages, "node_modules/@mariozechner/pi-coding-agent/dist/index.js");
  const { SessionManager } = await import(pathToFileURL(entry).href);

  const folder = mkdtempSync(join(tmpdir(), "pi-context-"));
  let before;
  let after;
  try {
    before = load(SessionManager, folder, "before.jsonl", readable(beforeBytes.toString("utf8"), mended));
    after = load(SessionManager, folder, "after.jsonl", afterBytes.toString("utf8"));
  } finally {
    rmSync(folder, { recursive: true });
  }
  if (before.problem) skip(`pi cannot load BEFORE: ${before.problem}`);
  const rewires = findings.find((f) => REWIRES.test(f.code) && mended(f.code));
  if (rewires) skip(`${rewires.code} is meant to change what pi can reach`);
  const widens = findings.some((f) => f.code === "P2" && f.fix === "safe" && /compaction kept/.test(f.message));
  if (widens) skip("P2 lets the compaction keep the call that it had parted from its result");
  const recounts = mended("B2") && beforeBytes.includes('"firstKeptEntryIndex"');
  if (recounts) skip("pi counted glued lines as one or as none; a compaction that counts lines keeps what pi kept");
  if (after.problem) fail(`pi cannot load AFTER: ${after.problem}`);
  if (before.messages.length > 0 && after.messages.length === 0) fail("AFTER has no messages left");

  // Every call that P1 names is still there, with exactly one result before its id comes again.
  for (const f of findings.filter((f) => f.code === "P1" && !/guarded|held|none/.test(f.fix ?? ""))) {
    const results = (messages) => {
      const counts = [];
      for (const m of messages) {
        if (m.role === "assistant" && blocks(m).some((b) => isCall(b) && b.id === f.call)) counts.push(0);
        if (m.role === "toolResult" && m.toolCallId === f.call) counts.push((counts.pop() ?? 0) + 1);
      }
      return counts;
    };
    const was = results(before.messages);
    const is = results(after.messages);
    if (was.length > 0 && (is.length === 0 || is.some((n) => n !== 1))) {
      fail(`call ${f.call} (P1) has ${is.length === 0 ? "gone" : `${is.join(", ")} results, not one`}`);
    }
  }

  if (mended("B5")) before.messages = wellFormed(before.messages);

  // Take out what pairing may add, remove or move; compare the rest in order.
  const results = named(PAIRING);
  if (findings.some((f) => f.code === "P2" && !f.call)) results.add(""); // a result that names no call
  const calls = named(DROPS_CALLS);
  const rest = (messages) =>
    messages
      .filter((m) => m.role !== "toolResult" || !results.has(m.toolCallId))
      .map((m) =>
        m.role === "assistant" && Array.isArray(m.content)
          ? { ...m, content: m.content.filter((b) => !isCall(b) || !calls.has(b.id)) }
          : m,
      )
      .filter((m) => {
        const vacuous = m.role === "assistant" && Array.isArray(m.content);
        return !(vacuous && has(EMPTIES) && m.content.every((b) => isThinking(b) && has(/^M4$/)));
      });
  const was = rest(before.messages);
  const is = rest(after.messages);
  if (is.length === was.length + 1 && has(/^B1$/)) is.pop(); // a completed last line

  const name = (m) => (m ? `${m.role}${m.toolCallId ? ` ${m.toolCallId}` : ""}` : "nothing");
  for (let i = 0; i < Math.max(was.length, is.length); i++) {
    if (name(was[i]) !== name(is[i])) {
      fail(`message ${i} of ${was.length} (after: ${is.length}) was ${name(was[i])}, is ${name(is[i])}`);
    }
    sameMessage(`message ${i} (${name(was[i])})`, was[i], is[i], has(/^M4$/));
  }
  if (!has(EMPTIES)) same("model", before.model, after.model); // pi takes it from the last assistant message
  same("thinking level", before.thinkingLevel, after.thinkingLevel);
  const apart = before.messages.length - was.length;
  const counts = [`${after.messages.length} messages`, `${was.length} compared`, `${cuts} texts cut`];
  console.log(`ok ${counts.join(", ")}, ${apart} set apart by findings`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Stop)) throw error;
  console.log(error.message);
  process.exitCode = error.code;
}
