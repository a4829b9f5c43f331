// Plays a transcript into a session as pi writes it: one `fs.appendFileSync` a line.
//
//   node play.mjs SOURCE SESSION
//
// For each line on standard input, a number, so many lines of the source are appended, one by one; then a `.` is
// printed. Ends with its input.

import fs from "node:fs";
import readline from "node:readline";

const [source, session] = process.argv.slice(2);
const lines = fs.readFileSync(source).toString("latin1").split("\n");
if (lines.at(-1) === "") lines.pop();

for await (const count of readline.createInterface({ input: process.stdin })) {
  for (const line of lines.splice(0, Number(count))) {
    fs.appendFileSync(session, Buffer.from(line + "\n", "latin1"));
  }
  fs.writeSync(1, ".\n");
}
