// Says when a session is broken as it begins, and has it repaired once pi has ended. `tailor` has to be on the PATH.
//
// pi holds the session in memory, so nothing is changed here: `tailor hook end` leaves the repair to a process of its own,
// which waits until pi is gone. Whatever fails here is not worth a word, so that pi never stops over it.

import { spawn } from "node:child_process";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

const START_MILLISECONDS_MAX = 5_000;

/** Runs the hook; what it printed, or nothing if that failed. */
function hook(event: "start" | "end", ctx: ExtensionContext): Promise<string> {
	const transcript_path = ctx.sessionManager.getSessionFile();
	if (!transcript_path) return Promise.resolve("");
	return new Promise((resolve) => {
		const child = spawn("tailor", ["hook", event], { stdio: ["pipe", "pipe", "ignore"], timeout: START_MILLISECONDS_MAX });
		let printed = "";
		child.stdout.on("data", (text) => (printed += text));
		child.on("error", () => resolve(""));
		child.on("close", () => resolve(printed));
		child.stdin.on("error", () => {});
		child.stdin.end(JSON.stringify({ transcript_path }));
	});
}

export default function (pi: ExtensionAPI) {
	pi.on("session_start", async (_event, ctx) => {
		const printed = await hook("start", ctx);
		try {
			if (printed) ctx.ui.notify(JSON.parse(printed).systemMessage, "warning");
		} catch {
			// It is no message of ours.
		}
	});
	// With another reason pi goes on living, and the repair waits for it.
	pi.on("session_shutdown", async (_event, ctx) => {
		await hook("end", ctx);
	});
}
