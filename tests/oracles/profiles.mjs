// Holds profiles against the code that they are from, in numbers: what each result of generated sessions keeps at its
// beginning and at its end, and how much of it is gone.
//
//   node --experimental-vm-modules profiles.mjs TAILOR WORK OPENCLAW_DIST [AGENT_MAX_CHECKOUT TYPESCRIPT]
//
// OpenClaw's pruner is taken from its published package, agent-max's functions from a checkout.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { original } from './original.mjs';

const [tailor, work, dist, agentMax, typescript] = process.argv.slice(2);

// --- sessions, the same on every run ---

let state = 20260201;
const random = (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
};
const pick = (all) => all[random(all.length)];
const words = ['alpha ', 'beta\n', 'é', '\u{1f980}', '"quoted" ', '\\', '\t', 'x', '0123456789'];
const text = (units) => {
    let out = '';
    while (out.length < units) out += pick(words).repeat(1 + random(40));
    return out.slice(0, out.slice(0, units).isWellFormed() ? units : units - 1);
};

function session(tools, sizes, turns) {
    const messages = [];
    const say = (role, more) => messages.push({ role, ...more });
    const said = (words) => [{ type: 'text', text: words }];
    for (let turn = 0, call = 0; turn < turns; turn++) {
        if (turn > 0 || random(4)) say('user', { content: said('go on') });
        for (let n = random(4); n > 0; n--) {
            const [id, name] = [`call_${call++}`, pick(tools)];
            const content = [{ type: 'toolCall', id, name, arguments: { n } }];
            say('assistant', { content, model: 'claude-opus-4-5', stopReason: 'toolUse' });
            const blocks = Array.from({ length: 1 + (random(5) === 0 ? 1 : 0) }, () => said(text(pick(sizes)()))[0]);
            say('toolResult', { toolCallId: id, toolName: name, content: blocks, isError: random(6) === 0 });
        }
        say('assistant', { content: said('done'), model: 'claude-opus-4-5', stopReason: 'stop' });
    }
    return messages;
}

/** What Tailor makes of sessions under a profile. */
function mended(name, sessions, profile, more) {
    const folder = join(work, name);
    mkdirSync(folder, { recursive: true });
    const path = (n) => join(folder, `${n}.jsonl`);
    sessions.forEach((messages, n) => {
        const lines = [{ type: 'session', version: 3, id: 's', cwd: '/w' }];
        messages.forEach((message, at) =>
            lines.push({ type: 'message', id: `e${at}`, parentId: at ? `e${at - 1}` : null, message }));
        writeFileSync(path(n), lines.map((line) => JSON.stringify(line) + '\n').join(''));
    });
    // Exit code 1: something was found that is only reported.
    const run = ['fix', folder, '--settle', '0', '--vault', join(work, 'vault'), '--profile', profile, ...more];
    run.push('--ignore', 'M2'); // what is blank is no matter of a length
    try {
        execFileSync(tailor, run, { stdio: ['ignore', 'ignore', 'pipe'] });
    } catch (error) {
        if (error.status !== 1) throw error;
    }
    return sessions.map((_, n) => {
        const lines = readFileSync(path(n), 'utf8').trimEnd().split('\n').slice(1);
        return lines.map((line) => JSON.parse(line).message);
    });
}

const MARKER = /\n?\[tailor: (\d+) of (\d+) chars omitted[^\]]*\]\n?/;

/** What is left of one text: its beginning, its end, how much is gone. Line breaks around the marker are its own. */
function left(now, before) {
    const found = now.match(MARKER);
    if (!found) return { head: now, tail: '', gone: 0 };
    const [gone, total] = [Number(found[1]), Number(found[2])];
    let [head, tail] = [now.slice(0, found.index), now.slice(found.index + found[0].length)];
    if (before.startsWith(head + '\n') && head.length + tail.length + gone < total) head += '\n';
    if (head.length + tail.length + gone !== total || total !== before.length) throw new Error('a marker counts wrong');
    if (!before.startsWith(head) || !before.endsWith(tail)) throw new Error('no beginning and end of the text');
    return { head, tail, gone };
}

let compared = 0, skipped = 0;
const wrong = [];
function same(what, ours, theirs) {
    compared++;
    const brief = (said) => String(said).split('|').map((part) => (part.length > 20 ? `${part.length} units` : part)).join(' | ');
    if (ours !== theirs) wrong.push(`${what}: ours ${brief(ours)}, theirs ${brief(theirs)}`);
}
const results = (messages) => messages.filter((message) => message.role === 'toolResult');

// --- OpenClaw: the pruner ---

async function openclaw() {
    const holds = (file) => readFileSync(join(dist, file), 'utf8').includes('\nfunction pruneContextMessages(');
    const chunk = readdirSync(dist).filter((file) => file.endsWith('.js')).find(holds);
    if (!chunk) throw new Error('no chunk of openclaw holds pruneContextMessages');
    const real = (specifier) => /^\.\/(utf16-slice|cjk-chars)-/.test(specifier);
    const names = ['pruneContextMessages', 'DEFAULT_CONTEXT_PRUNING_SETTINGS'];
    const { bindings: [prune, defaults] } = await original(join(dist, chunk), names, real);
    // A marker weighs more than their notes: 322 a text. Cleared results are made to weigh the same; where trimmed
    // ones, or characters of two units (we weigh characters), could tip the scales, nothing is compared.
    const placeholder = '~'.repeat(322);
    const settings = { ...defaults, hardClear: { enabled: true, placeholder } };
    const sizes = [() => 1 + random(300), () => 500 + random(3_000), () => 3_990 + random(20), () => 5_000 + random(40_000)];
    const one = () => session(['read', 'fetch'], sizes, 4 + random(8)).map((message) =>
        message.role === 'toolResult' ? { ...message, content: message.content.slice(0, 1) } : message);
    for (const tokens of [5_000, 20_000, 40_000, 80_000]) {
        const sessions = Array.from({ length: 60 }, one);
        const more = ['--window-tokens', String(tokens), '--crowded-cache-ttl', '0', '--cut-results', '0'];
        const ours = mended(`openclaw-${tokens}`, sessions, 'openclaw-5057', more);
        sessions.forEach((messages, n) => {
            const theirs = (window) => prune({ messages, settings, ctx: {}, contextWindowTokensOverride: window, isToolPrunable: () => true });
            const [wide, ...others] = [tokens, tokens * 1.03, tokens - results(messages).length * 240 / 4 / 0.5].map(theirs);
            if (others.some((other) => JSON.stringify(other) !== JSON.stringify(wide))) return skipped++;
            results(wide).forEach((message, at) => {
                const before = results(messages)[at].content[0].text;
                const now = left(results(ours[n])[at].content[0].text, before);
                const theirs = message.content[0].text;
                const trimmed = theirs.match(/^([\s\S]*)\n\.\.\.\n([\s\S]*)\n\n\[Tool result trimmed: kept first (\d+) chars and last (\d+) chars of (\d+) chars\.\]$/);
                const where = `openclaw, window ${tokens}, session ${n}, result ${at} of ${before.length}`;
                // What a marker would outweigh stays: shorter than any marker with room to spare.
                if (theirs === placeholder && before.length > 700) same(where, `${now.head.length} ${now.tail.length} ${now.gone}`, `0 0 ${before.length}`);
                else if (trimmed) same(where, `${now.head}|${now.tail}|${now.gone}`, `${trimmed[1]}|${trimmed[2]}|${trimmed[5] - trimmed[1].length - trimmed[2].length}`);
                else if (theirs !== placeholder) same(where, `${now.head}|${now.gone}`, `${theirs}|0`);
            });
        });
    }
    console.log(`openclaw's pruner: ${compared} results compared, ${skipped} of 240 sessions too near to a share of the window`);
}

// --- agent-max: what is pruned with age, and head and tail ---

async function agentmax() {
    const { default: ts } = await import(pathToFileURL(typescript));
    const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: false };
    const compile = (text) => ts.transpileModule(text, { compilerOptions: options }).outputText;
    const source = (file) => join(agentMax, 'src', file);
    const { bindings: [prune] } = await original(source('context.ts'), ['pruneStaleToolResults'], undefined, compile);
    const { bindings: [headAndTail] } = await original(source('tools/truncate.ts'), ['headAndTail'], undefined, compile);
    const began = compared;
    const sizes = [() => 1 + random(390), () => 390 + random(20), () => 700 + random(9_000), () => 9_990 + random(20), () => 10_000 + random(20_000)];
    const sessions = Array.from({ length: 150 }, () => session(['run_shell', 'fetch', 'claude-subagent'], sizes, 3 + random(6)));
    const ours = mended('agent-max', sessions, 'agent-max', []);
    sessions.forEach((messages, n) => {
        const pruned = results(prune(messages, 4));
        results(messages).forEach((before, at) => {
            const now = results(ours[n])[at];
            const where = `agent-max, session ${n}, result ${at}`;
            const texts = before.content.map((block) => block.text);
            const total = texts.reduce((sum, text) => sum + text.length, 0);
            const stub = pruned[at].content[0].text.match(/^\[(\S+) result — body pruned from context \((\d+) chars\)\. head: ([\s\S]*)\]$/);
            const parts = now.content.map((block, part) => left(block.text, texts[part]));
            const gone = parts.reduce((sum, part) => sum + part.gone, 0);
            same(`${where}: id`, `${now.toolCallId} ${now.isError}`, `${pruned[at].toolCallId} ${pruned[at].isError}`);
            if (stub) {
                // A marker outweighs what is a little over 400.
                if (total < 700 || texts.some((text) => text.length < 700)) return;
                same(`${where}: size`, total, Number(stub[2]));
                const [head] = parts;
                const theirs = stub[3].replace(/…$/, '');
                // A character of two units is never cut in half here.
                const halved = theirs.isWellFormed() ? 0 : 1;
                same(`${where}: head`, head.head.replace(/\s+/g, ' ').trim(), theirs.slice(0, theirs.length - halved));
                same(`${where}: gone`, gone, total - 200 + halved);
            } else if (texts.length === 1) {
                const max = { run_shell: 10_000, 'claude-subagent': 15_000 }[before.toolName] ?? Infinity;
                const cut = headAndTail(texts[0], max).match(/^([\s\S]*)\n\.\.\.\[truncated (\d+) chars\]\.\.\.\n([\s\S]*)$/);
                const expected = cut && total > max ? [cut[1].length, cut[3].length, Number(cut[2])] : [total, 0, 0];
                const [{ head, tail }] = parts;
                // As above, at either end.
                const near = [head.length, tail.length, gone].map((number, n) => (Math.abs(number - expected[n]) <= (n < 2 ? 1 : 2) ? expected[n] : number));
                // What exceeds by less than a marker takes is cut to less.
                if (total > max && total < max + 400) return;
                same(`${where}: cut`, near.join(' '), expected.join(' '));
            }
        });
    });
    console.log(`agent-max: ${compared - began} numbers compared`);
}

await openclaw();
if (agentMax) await agentmax();
for (const line of wrong.slice(0, 10)) console.log(line);
console.log(`profiles: ${compared} compared, ${wrong.length} differ`);
process.exitCode = wrong.length || compared < 500 ? 1 : 0;
