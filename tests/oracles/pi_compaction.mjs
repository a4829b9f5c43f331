// Asks pi itself what it would send after `tailor recover --level 2` or `tailor compact`.
//
//   node pi_compaction.mjs BEFORE.jsonl AFTER.jsonl REPORT.json
//
// BEFORE is a session in which nothing is left to mend. The context of AFTER must be our summary and the last messages of
// BEFORE, as many as stay, but for thinking that was taken out. Exit 0: so it is. 1: it is not. 77: skipped.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const end = (code, text) => {
  console.log(text);
  process.exit(code);
};
const [beforePath, afterPath, reportPath] = process.argv.slice(2);
const report = JSON.parse(readFileSync(reportPath, "utf8").trim() || "{}");
if (report.outcome !== "fixed" || !report.left_out) end(77, `skipped: ${report.outcome} ${report.reason ?? ""}`);

const packages = process.env.ORACLES ?? fileURLToPath(new URL("../../target/oracles", import.meta.url));
const entry = join(packages, "node_modules/@mariozechner/pi-coding-agent/dist/index.js");
const { SessionManager } = await import(pathToFileURL(entry).href);

const folder = mkdtempSync(join(tmpdir(), "pi-compaction-"));
function context(path, name) {
  const copy = join(folder, name);
  writeFileSync(copy, readFileSync(path)); // pi rewrites what is of an older version
  return SessionManager.open(copy).buildSessionContext().messages;
}
let before, after;
try {
  before = context(beforePath, "before.jsonl");
  after = context(afterPath, "after.jsonl");
} catch (error) {
  end(1, `FAILED: pi cannot load it: ${error.message}`);
} finally {
  rmSync(folder, { recursive: true });
}

const [summary, ...kept] = after;
if (summary?.role !== "compactionSummary") end(1, `FAILED: the context begins with ${summary?.role}`);
if (!summary.summary.startsWith("[tailor: ")) end(1, `FAILED: another summary: ${summary.summary.slice(0, 80)}`);
if (kept.length !== report.kept) end(1, `FAILED: ${kept.length} messages stay, ${report.kept} were told`);
const thought = (block) => block?.type === "thinking" || block?.type === "redacted_thinking";
const spoken = (m) => ({ ...m, content: Array.isArray(m.content) ? m.content.filter((b) => !thought(b)) : m.content });
const said = before.map((m) => JSON.stringify(spoken(m))).filter((text) => !text.includes('"content":[]'));
const says = kept.map((m) => JSON.stringify(spoken(m))).filter((text) => !text.includes('"content":[]'));
const tail = says.length ? said.slice(-says.length) : [];
const wrong = says.findIndex((text, i) => text !== tail[i]);
if (wrong >= 0) end(1, `FAILED: message ${wrong} is ${says[wrong].slice(0, 160)}\n  and was ${tail[wrong]?.slice(0, 160)}`);
end(0, `ok summary and ${kept.length} messages, ${report.left_out} left out`);
