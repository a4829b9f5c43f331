// Called by tests/report/run: makes reports, opens them from disk in Chromium, and compares what they draw with what
// `tailor scan --format json`, `tailor fix --dry-run --format json` and `tailor top --json` say of the same files.
"use strict";
const assert = require("node:assert/strict");
const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { chromium } = require("playwright-core");

const [tailor, browserPath, root, work, corpus, screenshots] = process.argv.slice(2);
const home = path.join(work, "home");
fs.mkdirSync(home);
const environment = { ...process.env, HOME: home, XDG_STATE_HOME: home, LC_ALL: "C.UTF-8" };

function run(...args) {
  const done = spawnSync(tailor, args, { env: environment, encoding: "utf8", maxBuffer: 1 << 28 });
  assert.ok(done.status !== null && !done.stderr.includes("panicked"), done.stderr);
  return done;
}
// The same, and how many seconds of CPU it took: a busy machine counts no more of them for the same work.
function timed(...args) {
  const shell = 'TIMEFORMAT="%U %S"; time "$0" "$@"';
  const done = spawnSync("bash", ["-c", shell, tailor, ...args], { env: environment, encoding: "utf8", maxBuffer: 1 << 28 });
  assert.ok(done.status !== null && !done.stderr.includes("panicked"), done.stderr);
  return sum(done.stderr.trim().split("\n").pop().split(" ").map(Number));
}
const lines = (...args) => run(...args).stdout.trim().split("\n").map((line) => JSON.parse(line));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

// How many times the CPU of a scan a report may take. It takes twice as much; the first version took 49 s for 7,400 sessions.
const SCANS_MAX = 5;

// --- sessions ---

const HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>@DATA@@JS@\u202e";

// A pi session with results of some tools, a compaction, images and copies that are not sent.
function session(seed, hostile) {
  const out = [{ type: "session", version: 3, id: `s${seed}`, cwd: "/w" }];
  const tools = ["read", "bash", hostile ? HOSTILE : "grep"];
  let parent = null, n = 0;
  const add = (entry) => { const id = `e${n++}`; out.push({ ...entry, id, parentId: parent }); parent = id; };
  for (let turn = 0; turn < 6 + (seed % 5); turn += 1) {
    add({ type: "message", message: { role: "user", content: hostile ? HOSTILE.repeat(30) : `go on with ${turn}` } });
    const tool = tools[(turn + seed) % 3], call = `c${turn}`;
    add({ type: "message", message: { role: "assistant", model: "claude-x", stopReason: "toolUse",
      content: [{ type: "text", text: "now ".repeat(20 + seed % 50) }, { type: "toolCall", id: call, name: tool, arguments: { path: "a" } }],
      usage: { input: 100 * turn, output: 5, cacheRead: 1000, cacheWrite: 0 } } });
    add({ type: "message", message: { role: "toolResult", toolCallId: call, toolName: tool, content: [
      { type: "text", text: "row\n".repeat(turn === 3 ? 12000 : 50 + seed * 7 % 300) }], details: { copy: "c".repeat(2000) } } });
    if (turn === 4) add({ type: "compaction", summary: "so far ".repeat(40), firstKeptEntryId: `e${n - 3}` });
  }
  return out.map((entry) => JSON.stringify(entry) + "\n").join("");
}

// The same without one result, which is an error.
function lost(text) {
  const all = text.split("\n"), gone = all.find((line) => line.includes('"toolCallId":"c5"')), { id, parentId } = JSON.parse(gone);
  return all.filter((line) => line !== gone).join("\n").replaceAll(`"parentId":"${id}"`, `"parentId":"${parentId}"`);
}

function folder(name, files) {
  const dir = path.join(work, name);
  for (const [file, text] of files) {
    fs.mkdirSync(path.dirname(path.join(dir, file)), { recursive: true });
    fs.writeFileSync(path.join(dir, file), text);
  }
  return dir;
}

// --- the browser ---

async function open(browser, file, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  const wrong = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) wrong.push(message.text()); });
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("dialog", (dialog) => { wrong.push("dialog: " + dialog.message()); dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith("file://") && !request.url().startsWith("data:,")) wrong.push("request: " + request.url()); });
  await page.goto("file://" + file);
  await page.waitForFunction(() => document.documentElement.dataset.drawn);
  return { page, wrong };
}

const values = (page, selector, key) => page.$$eval(selector, (all, k) => all.map((e) => [e.dataset[k], Number(e.dataset.value)]), key);
const paths = (page) => page.$$eval("#table a", (links) => links.map((link) => link.dataset.path));
const column = (page, n) => page.$$eval(`#table tbody tr > :nth-child(${n})`, (cells) => cells.map((cell) => cell.textContent));

async function numbersAreRight(page, dir) {
  const scan = lines("scan", "--format", "json", dir), top = lines("top", "--json", "-n", "1000", dir);
  // `--settle 0` says that no agent runs: then calls that Kimi CLI left open get results, of which the page says nothing.
  const fixed = (settle) => lines("fix", "--dry-run", "--settle", settle, "--format", "json", dir).filter((l) => l.type === "file" && l.format);
  const leavesOpen = (line) => line.format === "kimi-cli";
  const dry = [...fixed("0").filter((l) => !leavesOpen(l)), ...fixed("0.001").filter(leavesOpen)];
  const summary = top[top.length - 1];
  const data = JSON.parse(await page.$eval("#data", (element) => element.textContent));
  assert.equal(data.totals.sessions, summary.weighed);
  assert.equal(data.totals.bytes, summary.bytes);
  assert.equal(data.totals.findings, scan[scan.length - 1].findings_total);
  assert.equal(data.totals.after, sum(dry.map((l) => l.bytes_after ?? l.bytes)));
  for (const [code, count] of data.findings) {
    assert.equal(count, sum(scan.filter((l) => l.type === "file").map((l) => l.findings.filter((f) => f.code === code).length)), code);
  }
  const drawn = await values(page, "#main > figure .cell", "name");
  const parts = sum(summary.parts.map((part) => part.tokens));
  assert.equal(sum(drawn.map(([, value]) => value)), Math.max(parts, summary.context.tokens), "the treemap adds up to the context");
  const added = drawn.find(([name]) => name === "not in the transcript");
  assert.equal(added ? added[1] : 0, Math.max(0, summary.context.tokens - parts), "what the agent adds is a cell of its own");
  for (const tool of summary.tools.filter((t) => t.result_tokens > 0).slice(0, 5)) {
    const cell = drawn.find(([name]) => name === "results of " + tool.name);
    assert.equal(cell && cell[1], tool.result_tokens, tool.name);
  }
  const areas = await page.$$eval("#main > figure .cell", (cells) => cells.map((cell) => {
    const rect = cell.querySelector("rect");
    return [Number(cell.dataset.value), rect.width.baseVal.value * rect.height.baseVal.value];
  }));
  const scale = sum(areas.map((a) => a[1])) / sum(areas.map((a) => a[0]));
  for (const [value, area] of areas) assert.ok(Math.abs(area - value * scale) <= 0.02 * area + 1, "areas are as large as what they show");
  const stacked = await values(page, "#main > figure rect[data-part]", "part");
  const before = stacked.slice(0, summary.parts.length);
  for (const [n, part] of summary.parts.entries()) assert.deepEqual(before[n], [part.name, part.bytes]);
  return { scan, top, data };
}

async function tableSorts(page, scan, top) {
  const sessions = top.filter((line) => line.outcome === "weighed");
  const errors = (path) => sum(scan.filter((line) => line.path === path)
    .map((line) => sum(line.findings.filter((f) => f.severity === "error").map((f) => 1 + (f.more ?? 0)))));
  const worst = [...sessions].sort((a, b) => errors(b.path) - errors(a.path) || b.bytes - a.bytes);
  assert.equal((await paths(page))[0], worst[0].path, "the one with most errors is first, then the largest");
  assert.equal(Number((await column(page, 5))[0].replaceAll(",", "")), errors(worst[0].path));
  await page.click("#table th:nth-child(8) button");
  const tokens = async () => (await column(page, 8)).map((text) => Number(text.replaceAll(",", "")));
  assert.deepEqual(await tokens(), sessions.map((s) => s.context.tokens).sort((a, b) => b - a));
  assert.equal(await page.getAttribute("#table th:nth-child(8)", "aria-sort"), "descending");
  await page.focus("#table th:nth-child(8) button");
  await page.keyboard.press("Enter");
  assert.deepEqual(await tokens(), sessions.map((s) => s.context.tokens).sort((a, b) => a - b), "by keyboard");
  assert.equal(await page.getAttribute("#table th:nth-child(8)", "aria-sort"), "ascending");
  await page.keyboard.press("Shift+Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "after a fix");
  const found = path.basename(sessions[0].path);
  await page.fill("#find", found);
  const left = await paths(page);
  assert.ok(left.length > 0 && left.length <= sessions.length && left.every((one) => one.includes(found)), "what is found is shown");
  await page.fill("#find", "");
}

// Findings are listed from the worst to the least, and each code leads to what it means.
async function codesAreExplained(page) {
  const rank = (name) => ["error", "warning", "note"].indexOf(name);
  const names = await page.$$eval('[aria-label="Findings by rule"] tbody td:nth-child(3)', (cells) => cells.map((cell) => cell.textContent));
  assert.ok(names.every((name, n) => rank(name) >= 0 && (n === 0 || rank(names[n - 1]) <= rank(name))), names.join());
  const codes = await page.$$eval('a[href^="#rule-"]', (links) => [...new Set(links.map((link) => link.getAttribute("href").slice(6)))]);
  for (const code of codes.slice(0, 3)) {
    await page.evaluate((to) => document.querySelector(`a[href="#rule-${to}"]`).click(), code);
    await page.waitForFunction((to) => document.getElementById("rule-" + to).open, code);
    const said = await page.textContent("#rule-" + code);
    const what = run("explain", code).stdout.split("\n").filter(Boolean)[1].trim().split(" ").slice(0, 4).join(" ");
    assert.ok(said.includes(what), `${code}: ${what}: ${said}`);
  }
}

// Who looks for help finds it first: what happened, and a command that works in any folder.
async function helpIsFirst(browser, page, dir) {
  const told = lines("doctor", "--json", dir).filter((line) => line.command && ["dead", "dying", "broken", "forgets", "too long", "refused"].includes(line.state));
  const shown = await page.$$eval("#main .help li", (all) => all.map((one) => [one.querySelector("code").textContent, one.querySelector("p").textContent]));
  assert.equal(shown.length, Math.min(told.length, 100), "each is listed");
  assert.ok(told.length > 2 || path.basename(dir) !== "few", "some are broken");
  const commands = new Set(told.map((line) => line.command));
  for (const [command, sentence] of shown) assert.ok(commands.has(command) && sentence.endsWith("."), command + " " + sentence);
  const heads = await page.$$eval("#main > h2", (all) => all.map((one) => one.textContent));
  assert.deepEqual(heads.slice(0, told.length ? 2 : 1), told.length ? ["Sessions that need help", "Sessions"] : ["Sessions"]);
  // From within the folder the paths are relative, and the commands are not.
  const file = path.join(work, "relative.html");
  spawnSync(tailor, ["report", ".", "-o", file], { env: environment, cwd: dir });
  const { page: again } = await open(browser, file);
  const absolute = await again.$$eval("#main .help code", (all) => all.map((one) => one.textContent));
  assert.deepEqual(absolute.sort(), shown.map(([command]) => command).sort());
  await again.close();
}

// The command that is copied is the one that `doctor` names.
async function commandsAreRight(page, dir) {
  const told = lines("doctor", "--json", dir).filter((line) => line.command && ["broken", "too long"].includes(line.state));
  for (const { path: file, command } of told.slice(0, 3)) {
    const link = await page.evaluate((wanted) => [...document.querySelectorAll("#table a")].find((a) => a.dataset.path === wanted)?.getAttribute("href"), file);
    await page.evaluate((to) => { location.hash = to; }, link);
    await page.waitForFunction((to) => [...document.querySelectorAll("#one .path, #one h2")].some((one) => one.textContent === to), file);
    assert.equal(await page.textContent("#one .command code"), command);
    await page.click("#one .command button");
    await page.waitForFunction(() => ["Copied", "Marked"].includes(document.querySelector("#one .command button").textContent));
    assert.equal(await page.evaluate(() => getSelection().toString().trim()), command);
  }
}

async function drillsDown(page, top) {
  const rich = top.filter((line) => line.outcome === "weighed").sort((a, b) => b.turns.length - a.turns.length)[0];
  await page.evaluate((wanted) => [...document.querySelectorAll("#table a")].find((a) => a.dataset.path === wanted).focus(), rich.path);
  await page.keyboard.press("Enter");
  await page.waitForSelector("#one h2");
  assert.ok((await page.$$eval("#one h2, #one .path", (all) => all.map((one) => one.textContent))).includes(rich.path));
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "H2", "focus follows");
  const cells = await values(page, "#one .cell", "name");
  const parts = sum(rich.parts.map((part) => part.tokens));
  assert.equal(sum(cells.map(([, value]) => value)), Math.max(parts, rich.context.tokens));
  const label = await page.getAttribute("#one .turns svg", "aria-label");
  const compactions = sum(rich.turns.map((turn) => turn.compactions));
  assert.ok(label.includes(`${compactions} compaction`), label);
  assert.equal((await page.$$("#one .turns .compaction")).length > 0, compactions > 0);
  return rich;
}

async function looks(browser, file, name) {
  for (const colorScheme of ["light", "dark"]) {
    for (const [size, width, height] of [["desktop", 1280, 900], ["phone", 390, 844], ["screen", 1920, 1080]]) {
      const { page, wrong } = await open(browser, file, { viewport: { width, height }, colorScheme });
      const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const light = back.match(/\d+/g).slice(0, 3).every((part) => Number(part) > 200);
      assert.equal(light, colorScheme === "light", back);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(wide <= 0, `${name} is ${wide} pixels too wide on a ${size}`);
      if (screenshots) await page.screenshot({ path: path.join(screenshots, `${name}-${size}-${colorScheme}.png`), fullPage: true });
      // A page about one session has nothing to drill down to.
      if (await page.$("#table")) {
        await page.evaluate(() => { location.hash = "#s0"; });
        await page.waitForSelector("#one h2");
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)) <= 0, "the drill-down fits");
        if (screenshots) await (await page.$("#one")).screenshot({ path: path.join(screenshots, `${name}-${size}-${colorScheme}-one.png`) });
      }
      assert.deepEqual(wrong, []);
      await page.close();
    }
  }
}

async function check(browser, name, dir, ...extra) {
  const file = path.join(work, name + ".html");
  const made = run("report", dir, "-o", file, ...extra);
  assert.ok(fs.existsSync(file), made.stderr);
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  const { page, wrong } = await open(browser, file);
  const { scan, top } = await numbersAreRight(page, dir);
  await tableSorts(page, scan, top);
  await codesAreExplained(page);
  await helpIsFirst(browser, page, dir);
  await drillsDown(page, top);
  await commandsAreRight(page, dir);
  assert.deepEqual(wrong, [], name);
  await page.close();
  await looks(browser, file, name);
  const text = fs.readFileSync(file, "utf8");
  console.log(`${name}: ${top.length - 1} files, ${text.length} bytes, as it should be`);
  return { file, text };
}

// A page about one session says everything once.
async function oneSession(browser, file, name) {
  const { page, wrong } = await open(browser, file);
  assert.equal(await page.$("#table"), null, "there is no list of one");
  const heads = await page.$$eval("h1, h2, h3, figcaption", (all) => all.map((one) => one.textContent));
  assert.equal(new Set(heads).size, heads.length, heads.join("; "));
  assert.equal((await page.$$("svg[aria-label^=Treemap]")).length, 1);
  assert.deepEqual(wrong, []);
  await page.close();
  await looks(browser, file, name);
}

// As many sessions as a busy home has.
function sevenThousand(texts) {
  const id = (n) => `${(n * 2654435761 % 2 ** 32).toString(16).padStart(8, "0")}-1a2b-4c3d-8e4f-5a6b7c8d9e0f`;
  return [...Array(7400).keys()].map((n) => [`projects/-home-someone-work-project-${n % 60}/${id(n)}.jsonl`, texts[n % texts.length]]);
}

// All fixtures.
function allKinds() {
  const all = fs.readdirSync(path.join(root, "fixtures"), { recursive: true }).filter((name) => path.basename(name) === "in.jsonl").sort();
  return all.map((name) => fs.readFileSync(path.join(root, "fixtures", name)));
}

// Titles that are long, not ASCII, and full of what a page has to escape.
function longTitles() {
  return ["把这个很长的标题说清楚。".repeat(40), "<&\"\\".repeat(200)].map((title) => {
    const message = { type: "message", id: "u", parentId: null, message: { role: "user", content: title } };
    return [{ type: "session", version: 3, id: "s", cwd: "/w" }, message].map((line) => JSON.stringify(line) + "\n").join("");
  });
}

// Pages about so many stay small, and are made and drawn soon.
async function manySessions(browser, name, texts) {
  const dir = folder(name, sevenThousand(texts)), page = path.join(work, `${name}.html`);
  const scanned = timed("scan", dir, "--no-cache", "--exit-zero", "-q"), seconds = timed("report", dir, "-o", page);
  const bytes = fs.statSync(page).size;
  assert.ok(bytes < 2_000_000, `7,400 sessions take ${bytes} bytes`);
  assert.ok(seconds < SCANS_MAX * scanned, `7,400 sessions take ${seconds} s of CPU, and a scan ${scanned}`);
  const opened = await open(browser, page);
  const drawn = Number(await opened.page.evaluate(() => document.documentElement.dataset.drawn));
  const rows = async () => (await opened.page.$$("#table tbody tr")).length;
  const told = JSON.parse(await opened.page.$eval("#data", (element) => element.textContent)).totals.sessions;
  assert.ok(told > 7_000, `${told} are sessions`);
  assert.equal(await rows(), 1000, "so many at first");
  await opened.page.click(".scroll + button.plain");
  assert.equal(await rows(), told);
  await opened.page.evaluate((last) => { location.hash = "#s" + last; }, told - 1);
  await opened.page.waitForSelector("#one .command code");
  assert.ok((await opened.page.textContent("#one .command:last-child code")).startsWith("tailor report "), "a page of its own");
  assert.deepEqual(opened.wrong, []);
  assert.ok(drawn < 10_000, `${drawn} ms`); // generous: the machine may be busy
  await opened.page.close();
  await looks(browser, page, name);
  console.log(`${name}: ${told} sessions, ${bytes} bytes after ${seconds.toFixed(1)} s of CPU (a scan: ${scanned.toFixed(1)} s), drawn ${Math.round(drawn)} ms after the page was asked for`);
}

(async () => {
  if (screenshots) fs.mkdirSync(screenshots, { recursive: true });
  const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-background-networking"] });
  try {
    const few = [...Array(8).keys()].map((n) => [`project/${n}.jsonl`, n % 3 === 1 ? lost(session(n * 37)) : session(n * 37)]);
    const plain = await check(browser, "few", folder("few", few));
    assert.ok(!plain.text.includes("now now"), "no content unless asked for");
    assert.ok(plain.text.includes("go on with 0"), "titles, which only the owner of the page can read");
    const untitled = run("report", path.join(work, "few"), "--no-titles", "-o", "-").stdout;
    assert.ok(!untitled.includes("go on with") && untitled.includes("made "), "no titles for others");

    const one = path.join(work, "one.html");
    run("report", path.join(folder("one", few.slice(0, 1)), "project"), "-o", one);
    await oneSession(browser, one, "one");

    const names = [["</title><img src=x onerror=alert(3)>.jsonl".replaceAll("/", "\u2215"), session(1, true)], ["b'\"&`.jsonl", session(2, true)]];
    await check(browser, "hostile", folder("hostile", names));
    const shown = await check(browser, "hostile-shown", folder("hostile-shown", names), "--show-content");
    assert.ok(!shown.text.slice(shown.text.indexOf("</noscript>")).includes("<img"));

    await manySessions(browser, "many", allKinds());
    await manySessions(browser, "titled", longTitles());

    if (corpus) await check(browser, "corpus", corpus);
  } finally {
    await browser.close();
  }
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
