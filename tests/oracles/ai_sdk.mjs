// Asks the AI SDK itself what it would send of its messages, before Tailor mends them and afterwards. `run` calls it.
//
//   node ai_sdk.mjs [-v] TAILOR WORK PACKAGE FILE…
//
// Each FILE lies in a fixture of ai-sdk-model or ai-sdk-ui. Messages for the screen go through validateUIMessages and
// convertToModelMessages, all go through generateText to a model that only listens. What has to hold of each:
//
//   accepted   what was sent before is sent afterwards; what is refused afterwards has an error among the findings
//              that remain, or waits for the tool that was called last
//   sent       without findings about pairs, content or bytes, the same prompt goes out but for the texts in it
//
// Exits 1 if one is not so.

import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, utimesSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const verbose = process.argv[2] === '-v';
const [tailor, work, from, ...files] = process.argv.slice(verbose ? 3 : 2);
const find = createRequire(join(from, 'package.json'));
const load = (name) => import(pathToFileURL(find.resolve(name)).href);
const { convertToModelMessages, generateText, safeValidateUIMessages } = await load('ai');
const { MockLanguageModelV4 } = await load('ai/test');

const LONG_AGO = Date.now() / 1000 - 30 * 24 * 3600;

/** What a model hears of a file: `{ prompt }`, or why the SDK sends nothing: `{ problem }`. */
async function heard(path, onScreen) {
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const model = new MockLanguageModelV4({
        doGenerate: async () => ({
            content: [{ type: 'text', text: '.' }],
            finishReason: { unified: 'stop', raw: 'stop' },
            usage,
            warnings: [],
        }),
    });
    let messages;
    try {
        const lines = readFileSync(path, 'utf8').split('\n').filter((line) => line.trim() !== '');
        messages = lines.map((line) => JSON.parse(line));
        if (onScreen) {
            const valid = await safeValidateUIMessages({ messages });
            if (!valid.success) throw valid.error;
            messages = await convertToModelMessages(valid.data);
        }
        const system = messages.filter((message) => message.role === 'system').map((message) => message.content);
        const spoken = messages.filter((message) => message.role !== 'system');
        await generateText({ model, system: system.join('\n') || undefined, messages: spoken, maxRetries: 0 });
        return { prompt: model.doGenerateCalls[0].prompt };
    } catch (error) {
        return { problem: `${error.name}: ${String(error.message).split('\n')[0]}`, last: messages?.at(-1) };
    }
}

/** What a part of a message is: the line of text that Tailor leaves of an image stands for a file. */
function kind({ type, text }) {
    return type === 'text' && /^\[tailor: [^\]]* image, /.test(text) ? 'file' : type;
}

/** A prompt without its texts. */
function shape(prompt) {
    const part = (of) => [kind(of), of.toolCallId, of.toolName, of.output?.type];
    return JSON.stringify(prompt.map(({ role, content }) => [role, Array.isArray(content) ? content.map(part) : '']));
}

/** What Tailor says as JSON about one file. */
function run(folder, ...args) {
    const said = spawnSync(tailor, args, { encoding: 'utf8', env: { ...process.env, HOME: folder } });
    const file = said.stdout.split("\n").find((line) => line.startsWith('{"type":"file"'));
    if (file === undefined) throw new Error(`tailor ${args[0]} exits ${said.status}: ${said.stderr.slice(-300)}`);
    return JSON.parse(file);
}

/** Why a file is not as it should be; `undefined` if it is. */
async function wrong(file, folder) {
    const onScreen = file.includes('/ai-sdk-ui/');
    const path = join(folder, 'in.jsonl');
    mkdirSync(folder, { recursive: true });
    copyFileSync(file, path);
    utimesSync(path, LONG_AGO, LONG_AGO);
    const args = join(dirname(file), 'policy.args');
    const own = existsSync(args) ? readFileSync(args, 'utf8').split('\n').slice(0, -1) : [];
    const forFix = own.filter((argument) => !/^--(max-|tolerance)/.test(argument));
    const fixed = run(folder, 'fix', '--settle=0', '--format=json', ...forFix, path);
    const left = run(folder, 'scan', '--format=json', path);
    const [before, after] = [await heard(file, onScreen), await heard(path, onScreen)];
    if (after.problem !== undefined) {
        if (before.problem === undefined) return `was sent before; now ${after.problem}`;
        const announced = left.findings.some((finding) => finding.severity === 'error');
        const waits = after.last?.role === 'assistant' && after.problem.startsWith('AI_MissingToolResults');
        return announced || waits ? undefined : `is refused, and no finding says so: ${after.problem}`;
    }
    const about = fixed.findings.filter((finding) => /^[PMBT]/.test(finding.code));
    if (before.problem === undefined && about.length === 0 && shape(before.prompt) !== shape(after.prompt)) {
        return `another prompt goes out:\n${shape(before.prompt)}\n${shape(after.prompt)}`;
    }
    return undefined;
}

let failed = 0;
for (const [n, file] of files.entries()) {
    const why = await wrong(file, join(work, String(n)));
    if (why !== undefined) failed += 1;
    const name = `${basename(dirname(dirname(file)))}/${basename(dirname(file))}`;
    if (verbose || why !== undefined) console.log(`${name}, AI SDK: ${why === undefined ? 'ok' : `FAILED: ${why}`}`);
}
console.log(`AI SDK, what it sends: ${files.length - failed} passed, ${failed} failed`);
process.exit(failed > 0 || files.length === 0 ? 1 : 0);
