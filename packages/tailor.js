#!/usr/bin/env node
// Starts the program from the package for this system, which npm installs as an optional dependency.
"use strict";
const { spawn } = require("node:child_process");

const system = `${process.platform}-${process.arch}`;
const name = `session-tailor-${system}`;
let program;
try {
  program = require.resolve(`${name}/tailor${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`tailor: the package ${name} is not installed. Either there is none for this system, or npm left out
optional dependencies. Try: npm install ${name}`);
  process.exit(2);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends Ctrl-C to the program as well, and the program decides when to end.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("error", (error) => {
  console.error(`tailor: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
