"use strict";
// Draws the page from the data in it. Texts from transcripts only ever become text nodes.
const data = JSON.parse(document.getElementById("data").textContent);
// Rows name folders, projects and commands by number.
const KEYS = ["folder", "file", "format", "title", "project", "modified", "state", "back", "command", "word", "errors", "found", "bytes", "after",
  "entries", "turns", "tokens", "exact"];
const sessions = data.sessions.map((row, n) => {
  const session = Object.fromEntries(KEYS.map((key, k) => [key, row[k]]));
  const named = (id) => data.names[id] || "";
  session.path = named(session.folder) + session.file;
  session.project = named(session.project);
  session.word = session.word || (/^([A-Za-z]:)?[/\\]/.test(session.path) ? "" : data.here) + session.path;
  session.command = session.command >= 0 ? named(session.command) + session.word : "";
  return Object.assign(session, data.drawn[n]);
});
const SVG = "http://www.w3.org/2000/svg";
const PARTS = { results: "tool results", calls: "tool calls", assistant: "assistant text", thinking: "thinking",
  user: "user text", notes: "summaries and notes", images: "images", "side-copies": "copies of results, not sent",
  envelope: "ids, times, settings", bookkeeping: "bookkeeping, never sent" };
const STANDINGS = { context: "in the context", compacted: "before the last compaction", "off-branch": "off the live branch",
  unsent: "bookkeeping, never sent", "no-entry": "line breaks and damage" };

function make(name, attributes = {}, ...inside) {
  const drawn = ["svg", "g", "rect", "path", "line", "circle", "text", "title"].includes(name);
  const element = drawn ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...inside.filter((part) => part !== null && part !== undefined));
  return element;
}

const grouped = (number) => Math.round(number).toLocaleString("en-US");
function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let n = 0;
  while (bytes >= 1000 && n < units.length - 1) { bytes /= 1000; n += 1; }
  return (n ? bytes.toFixed(bytes < 100 ? 2 : 0) : bytes) + " " + units[n];
}
function percent(part, whole) {
  const share = whole ? (part / whole) * 100 : 0;
  return share > 0 && share < 0.5 ? "<1%" : Math.round(share) + "%";
}
const plural = (n, one) => grouped(n) + " " + one + (n === 1 ? "" : "s");
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const part = (n) => PARTS[data.parts[n]] || data.parts[n];
const standing = (n) => STANDINGS[data.standings[n]] || data.standings[n];
const tool = (n) => data.tools[n] || "(no name)";

const day = (seconds) => {
  if (!seconds) return "";
  const time = new Date(seconds * 1000), two = (n) => String(n).padStart(2, "0");
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${two(time.getHours())}:${two(time.getMinutes())}`;
};

// --- what all pages of figures have in common ---

const severity = (name) => make("span", { class: name === "error" ? "error" : null }, name);
const link = (code) => make("a", { href: "#rule-" + code }, code);

// A command, and a button that copies it. Where that is not allowed it is marked, to be copied by hand.
function command(text) {
  const code = make("code", {}, text);
  const copy = async (event) => {
    const button = event.target;
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Marked";
    }
  };
  return make("p", { class: "command" }, code, make("button", { type: "button", class: "plain", on: { click: copy } }, "Copy"));
}

function tiles(items) {
  return make("dl", { class: "tiles" }, ...items.map(([name, value, small]) => make("div", {},
    make("dt", {}, name), make("dd", {}, value, small ? make("small", {}, small) : null))));
}

function table(caption, columns, rows) {
  const head = make("tr", {}, ...columns.map((c) => make("th", { scope: "col", class: c.class }, c.title)));
  const body = rows.map((row) => make("tr", {}, ...row.map((cell, n) => make(n ? "td" : "th",
    { class: columns[n].class, scope: n ? null : "row" }, cell))));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make("table", { "aria-label": caption }, make("thead", {}, head), make("tbody", {}, ...body)));
}

function bars(caption, unit, rows, whole) {
  const most = Math.max(1, ...rows.map((row) => row[1]));
  const bar = (value) => make("span", { class: "bar", style: `width:${((value / most) * 100).toFixed(1)}%`, "aria-hidden": "true" });
  return table(caption, [{ title: "" }, { title: unit, class: "n" }, { title: "%", class: "n" }, { title: "", class: "bars" }],
    rows.map(([name, value, show]) => [name, show || grouped(value), percent(value, whole), bar(value)]));
}

// What is drawn on a telephone is drawn narrower, so that its words can be read.
const narrow = window.innerWidth < 640;

// --- treemap: squarified, after Bruls, Huizing and van Wijk (2000) ---

function squarify(items, x, y, w, h) {
  const all = sum(items.map((item) => item.value));
  const cells = [];
  let rest = items.filter((item) => item.value > 0).sort((a, b) => b.value - a.value);
  const scale = all ? (w * h) / all : 0;
  const worst = (row, side) => {
    const total = sum(row) * scale, squared = side * side;
    return Math.max((squared * Math.max(...row) * scale) / (total * total), (total * total) / (squared * Math.min(...row) * scale));
  };
  while (rest.length) {
    const side = Math.min(w, h);
    let count = 1;
    const values = rest.map((item) => item.value);
    while (count < rest.length && worst(values.slice(0, count + 1), side) <= worst(values.slice(0, count), side)) count += 1;
    const row = rest.slice(0, count), total = sum(values.slice(0, count)) * scale, thick = side ? total / side : 0;
    let along = 0;
    for (const item of row) {
      const long = thick ? (item.value * scale) / thick : 0;
      cells.push(w >= h ? { item, x, y: y + along, w: thick, h: long } : { item, x: x + along, y, w: long, h: thick });
      along += long;
    }
    if (w >= h) { x += thick; w -= thick; } else { y += thick; h -= thick; }
    rest = rest.slice(count);
  }
  return cells;
}

// What fills the context: parts, tool results by tool, and what the agent adds to them.
function filling(parts, tools, tokens) {
  const items = [];
  parts.forEach((tokens, n) => {
    if (data.parts[n] !== "results") { items.push({ name: part(n), value: tokens, colour: n }); return; }
    let named = 0;
    for (const [id, , , result] of tools) {
      if (result > 0) items.push({ name: "results of " + tool(id), value: result, colour: n });
      named += result;
    }
    if (tokens - named > 0) items.push({ name: "other tool results", value: tokens - named, colour: n });
  });
  items.push({ name: "not in the transcript", value: tokens - sum(parts), colour: data.parts.indexOf("bookkeeping") });
  return items.filter((item) => item.value > 0).sort((a, b) => b.value - a.value);
}

function treemap(items, whole, label) {
  const W = narrow ? 380 : 900, H = narrow ? 420 : 340;
  const cells = squarify(items, 0, 0, W, H).map(({ item, x, y, w, h }) => {
    const text = (line, dy) => w > 64 && h > dy + 6
      ? make("text", { x: x + 7, y: y + dy }, line.length * 7.2 > w - 10 ? line.slice(0, Math.max(1, Math.floor((w - 22) / 7.2))) + "\u2026" : line) : null;
    return make("g", { class: "cell", "data-name": item.name, "data-value": item.value },
      make("title", {}, `${item.name}: ${grouped(item.value)} tokens, ${percent(item.value, whole)}`),
      make("rect", { x, y, width: Math.max(0, w), height: Math.max(0, h), fill: `var(--p${item.colour})` }),
      text(item.name, 19), text(`${grouped(item.value)} (${percent(item.value, whole)})`, 36));
  });
  return make("figure", {}, make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label }, ...cells));
}

function context(parts, tools, tokens, what) {
  const items = filling(parts, tools, tokens);
  if (!items.length) return [make("p", { class: "soft" }, "Nothing is in the context.")];
  const label = `Treemap: what fills ${what}, ${grouped(tokens)} tokens`;
  const whole = sum(items.map((item) => item.value));
  return [treemap(items, whole, label),
    make("details", {}, make("summary", {}, "As a table"), bars(label, "tokens", items.map((i) => [i.name, i.value]), whole))];
}

// --- before and after a fix ---

function stacks(rows, format, label) {
  const most = Math.max(1, ...rows.map(([, values]) => sum(values)));
  const W = narrow ? 380 : 900, H = 30, left = narrow ? 46 : 70, right = 92;
  const drawn = rows.flatMap(([name, values], n) => {
    let x = left;
    const y = n * (H + 12);
    const pieces = values.map((value, p) => {
      const w = (value / most) * (W - left - right);
      const piece = make("rect", { x, y, width: w, height: H, fill: `var(--p${p})`, "data-part": data.parts[p], "data-value": value },
        make("title", {}, `${name}, ${part(p)}: ${format(value)}`));
      x += w;
      return piece;
    });
    return [make("text", { x: 0, y: y + 20 }, name), ...pieces, make("text", { x: x + 8, y: y + 20, class: "soft" }, format(sum(values)))];
  });
  return make("figure", {}, make("svg", { viewBox: `0 0 ${W} ${rows.length * (H + 12)}`, role: "img",
    "aria-label": label + ": " + rows.map(([name, values]) => `${name} ${format(sum(values))}`).join(", ") }, ...drawn));
}

function legend(used) {
  return make("ul", { class: "legend" }, ...data.parts.map((_, n) => used[n] > 0
    ? make("li", {}, make("i", { style: `background:var(--p${n})` }), part(n)) : null));
}

function beforeAfter(before, after, tokens, tokensAfter, back) {
  return [make("h3", {}, "The file, before and after a fix"),
    stacks([["before", before], ["after", after]], size, "Bytes"),
    make("h3", {}, "The context, before and after a fix" + (back ? `: +${plural(back, "message")}` : "")),
    stacks([["before", tokens], ["after", tokensAfter]], (n) => grouped(n) + " tok.", "Tokens"),
    legend(before)];
}

// --- size over turns ---

// Points: turn, bytes so far, tokens in the context, compactions, cuts made, cuts to make.
function overTurns(points, turns) {
  const W = narrow ? 380 : 900, left = 64, right = 12, high = 150, low = 90, first = 22;
  const x = (turn) => left + (turns > 1 ? ((turn - 1) / (turns - 1)) * (W - left - right) : 0);
  const most = (n) => Math.max(1, ...points.map((point) => point[n]));
  const tokens = Math.max(most(2), 1), bytes = most(1), second = first + high + 44;
  const y = (value, all, height, top) => top + height - (value / all) * height;
  const path = (n, all, height, top, close) => {
    const line = points.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[n], all, height, top).toFixed(1)}`).join("");
    return close ? `${line}L${x(points[points.length - 1][0]).toFixed(1)} ${top + height}L${x(points[0][0]).toFixed(1)} ${top + height}Z` : line;
  };
  const axis = (top, height, all, format) => [
    make("line", { x1: left, x2: W - right, y1: top + height, y2: top + height, stroke: "var(--line)" }),
    make("text", { x: left - 8, y: top + 10, "text-anchor": "end", class: "soft" }, format(all)),
    make("text", { x: left - 8, y: top + height, "text-anchor": "end", class: "soft" }, "0")];
  const marks = [];
  for (const [turn, , , compactions, cuts, cutting] of points) {
    const at = x(turn).toFixed(1);
    if (compactions) marks.push(make("line", { class: "compaction", x1: at, x2: at, y1: first, y2: second + low, stroke: "var(--mark)",
      "stroke-dasharray": "4 3" }, make("title", {}, `turn ${turn}: ${plural(compactions, "compaction")}`)));
    const triangle = (fill, what, name) => make("path", { class: name, d: `M${at} ${second + low + 3}l5 9h-10z`, fill,
      stroke: "var(--accent)" }, make("title", {}, `turn ${turn}: ${what}`));
    if (cuts) marks.push(triangle("var(--accent)", plural(cuts, "cut") + " made", "cut"));
    else if (cutting) marks.push(triangle("none", plural(cutting, "cut") + " a fix would make", "cutting"));
  }
  const count = (n) => sum(points.map((point) => point[n]));
  const label = `Over ${plural(turns, "turn")}: the context reaches ${grouped(tokens)} tokens, the file ${size(bytes)}; `
    + `${plural(count(3), "compaction")}, ${plural(count(4), "cut")} made, ${plural(count(5), "cut")} a fix would make`;
  return make("figure", { class: "turns" }, make("svg", { viewBox: `0 0 ${W} ${second + low + 34}`, role: "img", "aria-label": label },
    make("text", { x: left, y: first - 10, class: "soft" }, "tokens in the context"),
    make("text", { x: left, y: second - 10, class: "soft" }, "bytes of the file"),
    ...axis(first, high, tokens, (n) => n >= 10000 ? Math.round(n / 1000) + "k" : grouped(n)), ...axis(second, low, bytes, size),
    make("path", { d: path(2, tokens, high, first, true), fill: "var(--p0)", opacity: ".35" }),
    make("path", { d: path(2, tokens, high, first, false), fill: "none", stroke: "var(--p0)", "stroke-width": "2" }),
    make("path", { d: path(1, bytes, low, second, true), fill: "var(--p7)", opacity: ".45" }),
    ...marks,
    make("text", { x: left, y: second + low + 30, class: "soft" }, "turn 1"),
    make("text", { x: W - right, y: second + low + 30, "text-anchor": "end", class: "soft" }, "turn " + grouped(turns))),
  make("figcaption", {}, label + ". Dashed: compactions. Triangles: cuts, made (full) or to make (empty)."));
}

// --- sessions that need help ---

const SENTENCES = { forgets: (s) => `The agent sends only a part of it; the repair brings ${plural(s.back, "message")} back.`,
  "too long": (s) => `Its ${grouped(s.tokens)} tokens do not fit the model's context window.`,
  refused: () => "The provider refused the last request.",
  dead: () => "The agent does not load all of it any more, and the rest is refused.",
  dying: () => "Soon the agent will not load all of it any more.",
  broken: (s) => { const worst = (s.findings || [])[0]; return worst ? data.rules[worst[0]][2][0] : "The agent or the API refuses it."; } };
// How many are listed, and how many more can be unfolded.
const HELP_SHOWN = 10, HELP_FOLDED = 90;

function help() {
  const needing = sessions.map((session, n) => [session, n]).filter(([session]) => SENTENCES[session.state] && session.command);
  if (!needing.length) return [];
  const one = ([session, n]) => make("li", {}, make("a", { href: `#s${n}` }, session.title || session.path), " ",
    severityOf(session.state), session.back ? ` +${plural(session.back, "message")}` : null, make("p", {}, SENTENCES[session.state](session)), command(session.command));
  const folded = needing.slice(HELP_SHOWN, HELP_SHOWN + HELP_FOLDED), more = needing.length - HELP_SHOWN;
  return [make("h2", {}, "Sessions that need help"), make("ul", { class: "help" }, ...needing.slice(0, HELP_SHOWN).map(one)),
    more > 0 ? make("details", {}, make("summary", {}, `${grouped(more)} more${more > HELP_FOLDED ? `, of which ${HELP_FOLDED} are here` : ""}`),
      make("ul", { class: "help" }, ...folded.map(one))) : null];
}

// --- all sessions ---

function findings(rows) {
  if (!rows.length) return make("p", {}, "Nothing is wrong.");
  const columns = [{ title: "code" }, { title: "rule" }, { title: "severity" }, { title: "findings", class: "n" }, { title: "sessions", class: "n wide" },
    { title: "a fix mends", class: "n" }];
  return table("Findings by rule", columns, rows.map(([code, count, files, mended]) => {
    const rule = data.rules[code] || ["", ""];
    return [link(code), rule[0], severity(rule[1]), grouped(count), grouped(files), grouped(mended)];
  }));
}

// What each code on the page means: the words of `tailor explain`.
function explanations() {
  const codes = data.findings.map(([code]) => code);
  if (!codes.length) return null;
  const one = (code) => {
    const [name, worst, [what, why, fix]] = data.rules[code];
    return make("details", { id: "rule-" + code }, make("summary", {}, `${code} ${name}, `, severity(worst)),
      make("p", {}, what), why ? make("p", {}, "Why: " + why) : null, fix ? make("p", {}, "Fix: " + fix) : null, command("tailor explain " + code));
  };
  return make("section", { id: "rules" }, make("h2", {}, "What the codes mean"), ...codes.map(one));
}

const COLUMNS = [
  { title: "session", class: "path", of: (s) => s.title || s.path, text: true },
  { title: "project", class: "wide name", of: (s) => s.project, text: true },
  { title: "format", class: "widest", of: (s) => s.format, text: true },
  { title: "written", class: "wide date", of: (s) => s.modified, show: (s) => day(s.modified) },
  { title: "errors", class: "n", of: (s) => s.errors, show: (s) => s.errors ? make("span", { class: "error" }, grouped(s.errors)) : "0" },
  { title: "size", class: "n", of: (s) => s.bytes, show: (s) => size(s.bytes) },
  { title: "after a fix", class: "n wide", of: (s) => s.after, show: (s) => size(s.after) },
  { title: "context, tokens", class: "n wide", of: (s) => s.tokens, show: (s) => grouped(s.tokens) },
  { title: "turns", class: "n widest", of: (s) => s.turns, show: (s) => grouped(s.turns) },
  { title: "findings", class: "n", of: (s) => s.found, show: (s) => grouped(s.found) },
];

// How many rows are shown at first: a telephone has to draw them.
const ROWS_SHOWN = 1000;

function sessionTable() {
  const heads = COLUMNS.map((column) => make("th", { scope: "col", class: column.class },
    make("button", { type: "button", on: { click: () => sort(column) } }, column.title)));
  const rows = sessions.map((session, n) => ({ session, n, element: null }));
  // A row is made when it is shown for the first time.
  const element = (row) => {
    if (row.element) return row.element;
    const { session, n } = row;
    const name = session.title ? [session.title, make("small", {}, session.path)] : [session.path];
    const cells = COLUMNS.map((column, c) => c ? make("td", { class: column.class }, column.show ? column.show(session) : column.of(session))
      : make("th", { scope: "row", class: "path" }, make("a", { href: `#s${n}`, "data-path": session.path }, ...name)));
    row.element = make("tr", {}, ...cells);
    return row.element;
  };
  const body = make("tbody", {});
  let wanted = "", most = ROWS_SHOWN;
  const more = make("button", { type: "button", class: "plain", on: { click: () => { most = rows.length; show(); } } }, "");
  // Puts the rows that are wanted on the page, in their order, and says how many these are.
  function show() {
    const texts = ({ path, title, project, format, state }) => [path, title, project, format, state];
    const found = wanted ? rows.filter(({ session }) => texts(session).some((text) => text.toLowerCase().includes(wanted))) : rows;
    body.replaceChildren(...found.slice(0, most).map(element));
    more.textContent = `Show all ${grouped(found.length)}`;
    more.hidden = found.length <= most;
    return found.length;
  }
  const told = make("p", { class: "soft", role: "status" });
  let order = { column: COLUMNS.find((column) => column.title === "errors"), down: true };
  function mark() {
    COLUMNS.forEach((column, n) => {
      if (column === order.column) heads[n].setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else heads[n].removeAttribute("aria-sort");
    });
  }
  function sort(column) {
    order = { column, down: order.column === column ? !order.down : !column.text };
    const way = order.down ? -1 : 1;
    rows.sort((a, b) => {
      const [left, right] = [column.of(a.session), column.of(b.session)];
      return way * (column.text ? (left < right ? -1 : left > right ? 1 : 0) : left - right);
    });
    show();
    mark();
    told.textContent = `Sorted by ${column.title}, ${order.down ? "descending" : "ascending"}.`;
  }
  const find = (event) => {
    wanted = event.target.value.toLowerCase();
    const shown = show();
    told.textContent = `${plural(shown, "session")} shown.`;
  };
  show();
  mark();
  return [make("div", { class: "find" }, make("label", { for: "find" }, "Find"),
    make("input", { type: "search", id: "find", on: { input: find } }), told),
  make("div", { class: "scroll high", tabindex: "0", role: "region", "aria-label": "Sessions" },
    make("table", { id: "table", "aria-label": "Sessions" }, make("thead", {}, make("tr", {}, ...heads)), body)), more];
}

// --- one session ---

// What a fix leaves as it is is not told twice.
for (const session of sessions.slice(0, data.drawn.length)) {
  if (!session.partsAfter.length) session.partsAfter = session.parts;
  if (!session.partTokensAfter.length) session.partTokensAfter = session.partTokens;
}

const at = (line) => "line\u00a0" + grouped(line);

function lines(session) {
  const kind = ([line, bytes, p, s, id, content]) => {
    const named = ["results", "calls", "side-copies", "images"].includes(data.parts[p]) && id >= 0;
    const what = part(p) + (named ? ` (${tool(id)})` : "");
    return [at(line), size(bytes), make("span", {}, what, content ? make("span", { class: "content" }, make("br"), content) : null), standing(s)];
  };
  return table("Largest entries", [{ title: "line" }, { title: "size", class: "n" }, { title: "mostly" }, { title: "where" }], session.largest.map(kind));
}

// What it is, and what repairs it.
function about(session) {
  const known = [session.format, session.project && "project " + session.project, session.modified && "written " + day(session.modified),
    ["broken", "forgets", "too long"].includes(session.state) ? severityOf(session.state) : session.state,
    session.back && "+" + plural(session.back, "message")];
  const words = known.filter(Boolean).flatMap((word, n) => n ? [", ", word] : [word]);
  return [session.title ? make("p", { class: "path" }, session.path) : null, make("p", { class: "soft" }, ...words),
    ...(session.command ? [make("p", {}, explains(session.command) ? "To see what to do, run:" : "To repair it, run:"), command(session.command)] : [])];
}
const explains = (command) => command.startsWith("tailor explain ");
const severityOf = (state) => make("span", { class: "error" }, state);

// A session of which only a row is told, so that the page stays small.
function inShort(session) {
  return [...about(session), make("p", {}, `This page shows the ${grouped(data.drawn.length)} sessions with most errors and of the largest size one by one. For this one, run:`),
    command("tailor report " + session.word + " --output report.html")].filter(Boolean);
}

function ofSession(session) {
  if (!session.parts) return inShort(session);
  const details = [];
  if (session.counted) details.push(`the provider counted ${grouped(session.counted)}, with instructions and tools`);
  const parts = session.partTokens;
  const found = session.findings.map(([code, line, fix]) => {
    const [rule, worst] = data.rules[code] || ["", ""];
    return [link(code), rule, severity(worst), at(line), fix];
  });
  const findings = [
    found.length ? make("h3", {}, found.length < session.found ? `The first ${found.length} of ${grouped(session.found)} findings` : "Findings") : null,
    found.length ? table("Findings", [{ title: "code" }, { title: "rule" }, { title: "severity" }, { title: "line" }, { title: "fix" }], found) : null];
  return [
    ...about(session),
    tiles([["Size", size(session.bytes), session.after < session.bytes ? `${size(session.after)} after a fix` : null],
      ["Context", grouped(session.tokens) + " tokens", session.exact ? "exact" : "estimated"],
      ["Entries", grouped(session.entries), plural(session.turns, "turn")],
      ["Findings", grouped(session.found), session.errors ? plural(session.errors, "error") : "no error"]]),
    details.length ? make("p", { class: "soft" }, details.join("; ")) : null,
    session.unmended ? make("p", { class: "error" }, session.unmended) : null, ...findings,
    make("h3", {}, "What fills the context"), ...context(parts, session.tools, session.tokens, "the context of this session"),
    session.points.length > 1 ? make("h3", {}, "Size over turns") : null, session.points.length > 1 ? overTurns(session.points, session.turns) : null,
    ...beforeAfter(session.parts, session.partsAfter, parts, session.partTokensAfter, session.back),
    make("div", { class: "pair" },
      make("div", {}, make("h3", {}, "Where the bytes are"),
        bars("Where the bytes are", "bytes", session.standings.map((b, n) => [standing(n), b, size(b)]).filter((r) => r[1] > 0), session.bytes)),
      make("div", {}, make("h3", {}, "Largest entries"), lines(session))),
  ].filter((part) => part);
}

const drill = make("section", { id: "one", "aria-live": "polite" });
function open() {
  const rule = location.hash.startsWith("#rule-") && document.getElementById(location.hash.slice(1));
  if (rule) {
    rule.open = true;
    rule.scrollIntoView();
    return;
  }
  const asked = /^#s(\d+)$/.exec(location.hash);
  const session = asked && sessions[Number(asked[1])];
  drill.replaceChildren();
  drill.className = session ? "one" : "";
  if (!session) return;
  const title = make("h2", { tabindex: "-1" }, session.title || session.path);
  const back = make("a", { href: "#sessions" }, "Back to all sessions");
  drill.append(title, back, ...ofSession(session));
  title.scrollIntoView();
  title.focus({ preventScroll: true });
}

// --- the page ---

function short() {
  const parts = [], t = data.totals, most = data.partTokens.indexOf(Math.max(...data.partTokens));
  const first = [...data.toolRows].sort((a, b) => b[3] - a[3])[0];
  const whose = data.parts[most] === "results" && first ? `, mostly from ${tool(first[0])}` : "";
  if (t.tokens) parts.push(`${percent(data.partTokens[most], t.tokens)} of ${sessions.length === 1 ? "the context" : "all contexts"} is ${part(most)}${whose}`);
  const idle = data.standingBytes.map((b, n) => [b, n]).filter(([, n]) => data.standings[n] !== "context").sort((a, b) => b[0] - a[0])[0];
  if (idle && idle[0] * 5 > t.bytes) parts.push(`${percent(idle[0], t.bytes)} of the bytes is ${standing(idle[1])}`);
  if (t.bytes > t.after) parts.push(`a fix saves ${size(t.bytes - t.after)} (${percent(t.bytes - t.after, t.bytes)})`);
  return parts.length ? parts.join("; ") + "." : "Nothing stands out.";
}

function fieldsAndKinds(bytes) {
  return make("details", {}, make("summary", {}, "Fields and kinds of entries"), make("div", { class: "pair" },
    bars("Fields", "bytes", data.fields.map(([name, b]) => [name || "(short fields of the entry)", b, size(b)]), bytes),
    bars("Kinds of entries", "bytes", data.kinds.map(([name, b]) => [name, b, size(b)]), bytes)));
}

function toolBars(bytes) {
  return bars("Tools, by bytes of calls, results and copies", "bytes",
    [...data.toolRows].sort((a, b) => b[2] - a[2]).slice(0, 8).map(([id, , bytes]) => [tool(id), bytes, size(bytes)]), bytes);
}

// One session: what all sessions together would say is what it says itself.
function drawOne(main, session) {
  document.querySelector("h1").textContent = session.title || session.path;
  document.querySelector(".skip").remove();
  main.append(make("p", { class: "short" }, short()), ...ofSession(session),
    ...(data.toolRows.length ? [make("h3", {}, "Tools"), toolBars(session.bytes)] : []), fieldsAndKinds(session.bytes));
}

function drawAll(main) {
  const t = data.totals;
  const rest = [t.unsupported && `and ${plural(t.unsupported, "other file")}`, t.refused && `${t.refused} refused`, t.errors && `${t.errors} could not be read`];
  const errors = sum(sessions.map((session) => session.errors)), broken = sessions.filter((session) => session.errors).length;
  const dead = t.deadWeight < 1e6 ? [] : [["Can go", size(t.deadWeight), "history that no agent loads any more: tailor fix --only dead-weight"]];
  main.append(
    make("p", { class: "short" }, short()),
    tiles([...dead, ["Sessions", grouped(t.sessions), rest.filter(Boolean).join(", ")], ["Size", size(t.bytes), `${grouped(t.entries)} entries`],
      ["After a fix", size(t.after), `${size(Math.max(0, t.bytes - t.after))} less`],
      ["In contexts", grouped(t.tokens) + " tokens", t.exact ? "exact" : "estimated"],
      ["Errors", grouped(errors), `in ${plural(broken, "session")}`], ["Findings", grouped(t.findings), `in ${plural(t.ailing, "session")}`]]),
    ...help().filter(Boolean), make("h2", { id: "sessions" }, "Sessions"), ...sessionTable(), drill,
    make("h2", {}, "What fills the contexts"), ...context(data.partTokens, data.toolRows, t.tokens, "the contexts of all sessions"),
    make("h2", {}, "Before and after a fix"), ...beforeAfter(data.partBytes, data.partBytesAfter, data.partTokens, data.partTokensAfter, sum(sessions.map((session) => session.back))),
    make("div", { class: "pair" },
      make("div", {}, make("h2", {}, "Where the bytes are"),
        bars("Where the bytes are", "bytes", data.standingBytes.map((b, n) => [standing(n), b, size(b)]).filter((r) => r[1] > 0), t.bytes)),
      make("div", {}, make("h2", {}, "Tools"), toolBars(t.bytes))),
    fieldsAndKinds(t.bytes), make("h2", {}, "Findings by rule"), findings(data.findings));
}

function draw() {
  const main = document.getElementById("main"), shows = [data.titles && "titles of sessions", data.content && "text from the transcripts"].filter(Boolean);
  document.getElementById("made").textContent = `${plural(data.totals.sessions, "session")}, made ${data.made} by Tailor ${data.version}; `
    + (shows.length ? `it shows ${shows.join(" and ")}` : "it shows no text from the transcripts");
  if (sessions.length === 1) drawOne(main, sessions[0]);
  else drawAll(main);
  main.append(...[explanations()].filter(Boolean));
  if (data.troubles.length) main.append(make("h2", {}, "Not looked at"), table("Not looked at", [{ title: "file", class: "path" }, { title: "reason" }], data.troubles));
  window.addEventListener("hashchange", open);
  open();
  document.documentElement.dataset.drawn = performance.now().toFixed(1);
}
draw();
