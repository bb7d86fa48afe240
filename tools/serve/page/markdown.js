// Builds elements from Markdown as models write it: paragraphs, headings, lists with tasks, quotes, tables, code,
// formulas, rules; code spans, emphasis, links. Anything else is text, including HTML. Pictures become links, because
// nothing is loaded from other origins; links lead only to http, https and mailto.
//
// In: the source, and the ranges of it that came from accepted drafts, as [from, to, from, to, ...]. Out: elements in
// a container, in which these ranges are <span class="drafted">. If a text has grown, only its new blocks are built.

import {coloursLoaded, hasColours, putColoured} from "./colours.js";
import {copyButton, el} from "./dom.js";
import {formula} from "./formulas.js";

const DEEPEST = 12; // the most nested blocks, and the most nested emphases; deeper ones are text

/** Makes a flag for each character of the source: 1 if it came from an accepted draft. */
function flagsOf(length, drafted) {
    const flags = new Uint8Array(length);
    for (let i = 0; i + 1 < drafted.length; i += 2) flags.fill(1, drafted[i], drafted[i + 1]);
    return flags;
}

// ------------------------------------------------------------------------------------------------------------- blocks

// A line is {text, at}: its text, and the text's offset in the source. The marks before it (of a quote, or a list's
// indentation) were removed, so the text is one continuous part of the source.

function linesOf(source) {
    const lines = [];
    for (let at = 0; at < source.length;) {
        const end = source.indexOf("\n", at), to = end < 0 ? source.length : end;
        lines.push({text: source.slice(at, to), at});
        at = to + 1;
    }
    return lines;
}

const cut = (line, count) => ({text: line.text.slice(count), at: line.at + count});
const isBlank = (line) => line.text.trim() === "";
const indentOf = (line) => line.text.length - line.text.trimStart().length;

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/, HEADING = /^ {0,3}(#{1,6})(\s+|$)/, QUOTE = /^ {0,3}> ?/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/, ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+|$)/;
const TEX = /^ {0,3}(\$\$|\\\[)/, TEX_LINES = 200; // a formula on lines of its own, and the most lines of one
const TASK = /^\[([ xX])\]\s+/;
const DELIMITERS = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function begins(line) {
    return FENCE.test(line.text) || HEADING.test(line.text) || QUOTE.test(line.text) || RULE.test(line.text) ||
        ITEM.test(line.text) || TEX.test(line.text);
}

function isTable(lines, i) {
    return lines[i].text.includes("|") && i + 1 < lines.length && lines[i + 1].text.includes("-") &&
        DELIMITERS.test(lines[i + 1].text) && cellsOf(lines[i]).length === cellsOf(lines[i + 1]).length;
}

/** Gives the block at a line that is not blank, {kind, ..., next}; next: the line after the block. */
function blockAt(lines, i) {
    const line = lines[i];
    let match;
    if ((match = FENCE.exec(line.text))) return fencedAt(lines, i, match);
    if ((match = HEADING.exec(line.text))) return headingAt(lines, i, match);
    if (RULE.test(line.text)) return {kind: "rule", next: i + 1};
    if (QUOTE.test(line.text)) return quoteAt(lines, i);
    if (ITEM.test(line.text)) return listAt(lines, i);
    if (isTable(lines, i)) return tableAt(lines, i);
    if ((match = TEX.exec(line.text)) && (match = formulaAt(lines, i, match))) return match;
    let next = i + 1;
    while (next < lines.length && !isBlank(lines[next]) && !begins(lines[next]) && !isTable(lines, next)) next++;
    return {kind: "paragraph", lines: lines.slice(i, next).map((l) => cut(l, indentOf(l))), next};
}

/** Reads code up to the fence that closes it, or to the end if there is no such fence, or not yet. */
function fencedAt(lines, i, [, fence, info]) {
    const indent = indentOf(lines[i]), closing = new RegExp(`^\\s{0,3}${fence[0]}{${fence.length},}\\s*$`);
    let next = i + 1;
    while (next < lines.length && !closing.test(lines[next].text)) next++;
    const inner = lines.slice(i + 1, next).map((line) => cut(line, Math.min(indent, indentOf(line))));
    return {kind: "code", language: info.trim().split(/\s+/)[0], lines: inner, closed: next < lines.length,
            next: Math.min(next + 1, lines.length)};
}

/** Reads a formula up to its closing mark at the end of a line; null: there is no closing mark, or not yet. */
function formulaAt(lines, i, match) {
    const mark = match[1] === "$$" ? "$$" : "\\]";
    for (let next = i; next < Math.min(lines.length, i + TEX_LINES); next++) {
        const line = next === i ? cut(lines[i], match[0].length) : lines[next], text = line.text.trimEnd();
        if (!text.endsWith(mark)) continue;
        const inner = [cut(lines[i], match[0].length), ...lines.slice(i + 1, next + 1)].slice(0, next - i + 1);
        inner[next - i] = {...line, text: text.slice(0, -mark.length)};
        return {kind: "formula", lines: inner, next: next + 1};
    }
    return null;
}

function headingAt(lines, i, match) {
    const line = cut(lines[i], match[0].length);
    return {kind: "heading", level: match[1].length, lines: [{...line, text: line.text.replace(/\s+#+\s*$/, "")}],
            next: i + 1};
}

function quoteAt(lines, i) {
    const inner = [];
    for (let match; i < lines.length && (match = QUOTE.exec(lines[i].text)); i++)
        inner.push(cut(lines[i], match[0].length));
    return {kind: "quote", inner, next: i};
}

/** Reads list items of one kind. Lines that are indented as far as an item's text belong to the item. */
function listAt(lines, i) {
    const [, , mark] = ITEM.exec(lines[i].text), ordered = /\d/.test(mark), kind = mark.at(-1), items = [];
    const outer = indentOf(lines[i]);
    let loose = false, blank = false;
    while (i < lines.length) {
        if (isBlank(lines[i])) {
            blank = true;
            items.at(-1).push(lines[i++]);
            continue;
        }
        const match = ITEM.exec(lines[i].text), indent = indentOf(lines[i]), width = items.width ?? outer;
        if (items.length && indent >= width && indent > outer) {
            items.at(-1).push(cut(lines[i++], width));
        } else if (match && indent <= Math.max(outer, width - 1) && match[2].at(-1) === kind &&
                   !RULE.test(lines[i].text)) {
            loose ||= blank && items.length > 0;
            const space = match[3].length > 4 ? 1 : match[3].length || 1;
            items.width = match[1].length + match[2].length + space;
            items.push([cut(lines[i], Math.min(items.width, lines[i].text.length))]);
            i++;
        } else if (!blank && !begins(lines[i])) {
            items.at(-1).push(cut(lines[i], indent));
            i++;
        } else {
            break;
        }
        blank = false;
    }
    return {kind: "list", start: ordered ? parseInt(mark, 10) : null, items, loose, next: i};
}

/** Splits a table's line into cells. A bar after a backslash, or in a code span, is text. */
function cellsOf(line) {
    const cells = [];
    let from = 0, code = false;
    for (let i = 0; i <= line.text.length; i++) {
        const c = line.text[i];
        if (c === "\\") i++;
        else if (c === "`") code = !code;
        else if (c === undefined || (c === "|" && !code)) {
            cells.push([from, i]);
            from = i + 1;
        }
    }
    const texts = cells.map(([a, b]) => {
        const text = line.text.slice(a, b), lead = text.length - text.trimStart().length;
        return {text: text.trim(), at: line.at + a + lead};
    });
    if (texts.length > 1 && texts[0].text === "") texts.shift();
    if (texts.length > 1 && texts.at(-1).text === "") texts.pop();
    return texts;
}

function tableAt(lines, i) {
    const sides = cellsOf(lines[i + 1]).map(({text}) => {
        if (!text.endsWith(":")) return "";
        return text.startsWith(":") ? "center" : "right";
    });
    const rows = [cellsOf(lines[i])];
    let next = i + 2;
    for (; next < lines.length && !isBlank(lines[next]) && lines[next].text.includes("|"); next++)
        rows.push(cellsOf(lines[next]));
    return {kind: "table", sides, rows, next};
}

// ----------------------------------------------------------------------------------------------------------- elements

/** The text of a run of inline elements. flags[i]: character i came from an accepted draft. */
class Text {
    constructor(lines, flags) {
        this.text = lines.map((line) => line.text).join("\n");
        this.flags = new Uint8Array(this.text.length);
        let to = 0;
        for (const line of lines) {
            this.flags.set(flags.subarray(line.at, Math.min(line.at + line.text.length + 1, flags.length))
                .subarray(0, this.text.length - to), to);
            to += line.text.length + 1;
        }
        this.dead = new Map();
    }

    /** Appends the text [from, to), with drafted parts in spans. */
    put(parent, from, to) {
        for (let at = from, end; at < to; at = end) {
            end = at + 1;
            while (end < to && this.flags[end] === this.flags[at]) end++;
            const piece = this.text.slice(at, end);
            parent.append(this.flags[at] ? el("span.drafted", {}, piece) : piece);
        }
    }
}

function build(block, flags, depth) {
    const inline = (element, lines) => {
        const text = new Text(lines, flags);
        putInline(element, text, 0, text.text.length, 0);
        return element;
    };
    switch (block.kind) {
    case "code": return buildCode(block, flags);
    case "heading": return inline(el(`h${Math.min(block.level + 2, 6)}`), block.lines);
    case "rule": return el("hr");
    case "formula": return buildFormula(block, flags);
    case "quote": return buildAll(el("blockquote"), block.inner, flags, depth + 1);
    case "list": return buildList(block, flags, depth);
    case "table": return buildTable(block, inline);
    default: return inline(el("p"), block.lines);
    }
}

function buildCode(block, flags) {
    const text = new Text(block.lines, flags), code = el("code");
    const put = (parent, from, to) => text.put(parent, from, to);
    const colour = () => {
        const coloured = el("code");
        if (putColoured(coloured, text.text, block.language, put)) code.replaceChildren(...coloured.childNodes);
    };
    put(code, 0, text.text.length);
    if (block.language && block.closed) hasColours() ? colour() : coloursLoaded().then(colour);
    return el("div.code", {}, el("div.code-head", {}, el("span", {}, block.language || "text"),
                                 copyButton("Copy code", () => text.text)),
              el("pre", {tabindex: "0"}, code));
}

function buildFormula(block, flags) {
    const text = new Text(block.lines, flags);
    return el("p", {}, drafts(text, 0, text.text.length, formula(text.text.trim(), true)));
}

/** Shows an item that begins with [ ] or [x] as a task. It can't be ticked, because the text is the model's. */
function buildItem(lines, flags, depth) {
    const task = TASK.exec(lines[0].text);
    if (!task) return buildAll(el("li"), lines, flags, depth + 1);
    const done = task[1] !== " ", box = el("input", {type: "checkbox", disabled: true, checked: done,
                                                     "aria-label": done ? "Done" : "To do"});
    const item = buildAll(el("li.task"), [cut(lines[0], task[0].length), ...lines.slice(1)], flags, depth + 1);
    (item.firstElementChild?.tagName === "P" ? item.firstElementChild : item).prepend(box);
    return item;
}

function buildList(block, flags, depth) {
    const list = el(block.start === null ? "ul" : "ol", block.start > 1 ? {start: block.start} : {});
    for (const lines of block.items) {
        const item = buildItem(lines, flags, depth);
        if (!block.loose) {
            for (const child of [...item.children]) if (child.tagName === "P") child.replaceWith(...child.childNodes);
        }
        list.append(item);
    }
    return list;
}

function buildTable(block, inline) {
    const row = (cells, name) => el("tr", {}, ...block.sides.map((side, i) =>
        inline(el(name, {class: side || null}), cells[i] ? [cells[i]] : [])));
    const [head, ...rows] = block.rows;
    return el("div.table", {tabindex: "0"}, el("table", {}, el("thead", {}, row(head, "th")),
                                               el("tbody", {}, ...rows.map((cells) => row(cells, "td")))));
}

function buildAll(parent, lines, flags, depth) {
    for (let i = 0; i < lines.length;) {
        if (isBlank(lines[i])) {
            i++;
            continue;
        }
        const block = depth < DEEPEST ? blockAt(lines, i) : {kind: "paragraph", lines: lines.slice(i),
                                                             next: lines.length};
        parent.append(build(block, flags, depth));
        i = block.next;
    }
    return parent;
}

// ------------------------------------------------------------------------------------------------------------- inline

const MARKS = ["***", "___", "**", "__", "~~", "*", "_"];
const WRAP = {"*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "del"};
const SPECIAL = /[\\`*_~[!<\n$]|https?:\/\//g;
const isWord = (c) => c !== undefined && /[\p{L}\p{N}]/u.test(c);

/** Finds the mark that closes an emphasis, after `from` and before `to`; -1: there is none. */
function closing(t, mark, from, to) {
    const key = `${mark} ${to}`;
    if (t.dead.has(key)) return -1;
    for (let at = t.text.indexOf(mark, from + 1); at >= 0 && at + mark.length <= to;
         at = t.text.indexOf(mark, at + 1)) {
        const before = t.text[at - 1], behind = t.text[at + mark.length];
        if (/\s/.test(before) || before === "\\") continue;
        if (mark.length === 1 && (behind === mark || before === mark)) continue;
        if (mark[0] === "_" && isWord(behind)) continue;
        return at;
    }
    t.dead.set(key, true);
    return -1;
}

/** Puts an emphasis that begins at `at`; gives the offset after it, or `at` if there is none. */
function putEmphasis(parent, t, at, to, depth) {
    const mark = MARKS.find((m) => t.text.startsWith(m, at));
    if (!mark || depth >= DEEPEST) return at;
    const from = at + mark.length;
    if (from >= to || /\s/.test(t.text[from]) || (mark[0] === "_" && isWord(t.text[at - 1]))) return at;
    const end = closing(t, mark, from, to);
    if (end < 0) return at;
    const inner = mark.length === 3 ? el("em") : el(WRAP[mark]);
    putInline(inner, t, from, end, depth + 1);
    parent.append(mark.length === 3 ? el("strong", {}, inner) : inner);
    return end + mark.length;
}

function putCode(parent, t, at, to) {
    let width = 1;
    while (t.text[at + width] === "`") width++;
    const mark = "`".repeat(width), key = `${mark} ${to}`;
    let end = t.dead.has(key) ? -1 : t.text.indexOf(mark, at + width);
    while (end >= 0 && t.text[end + width] === "`") {
        let behind = end + width;
        while (t.text[behind] === "`") behind++;
        end = t.text.indexOf(mark, behind);
    }
    if (end < 0 || end + width > to) {
        t.dead.set(key, true);
        t.put(parent, at, at + width);
        return at + width;
    }
    const code = el("code"), padded = end - at - width > 2 && t.text[at + width] === " " && t.text[end - 1] === " ";
    t.put(code, at + width + padded, end - padded);
    parent.append(code);
    return end + width;
}

/** Marks the element as a draft if any part of [from, to) came from one. */
function drafts(t, from, to, element) {
    return t.flags.subarray(from, to).includes(1) ? el("span.drafted", {}, element) : element;
}

const CLOSES = {"$$": "$$", "$": "$", "\\(": "\\)", "\\[": "\\]"}, LONGEST_TEX = 2000;

/** Reads a formula within a line. A single $ is money, unless the text after it neither begins nor ends with a blank
 *  and no digit follows the closing $. */
function putFormula(parent, t, at, to) {
    const open = Object.keys(CLOSES).find((mark) => t.text.startsWith(mark, at));
    if (!open) return at;
    const close = CLOSES[open], from = at + open.length, key = `${close} ${to}`;
    if (t.dead.has(key) || (open === "$" && (from >= to || /\s/.test(t.text[from])))) return at;
    for (let end = t.text.indexOf(close, from + 1); end >= 0 && end + close.length <= to;
         end = t.text.indexOf(close, end + 1)) {
        if (open === "$" && (/[\s\\$]/.test(t.text[end - 1]) || /[\d$]/.test(t.text[end + 1] ?? ""))) continue;
        if (end - from > LONGEST_TEX) return at;
        parent.append(drafts(t, from, end, formula(t.text.slice(from, end).trim(), open === "$$" || open === "\\[")));
        return end + close.length;
    }
    t.dead.set(key, true);
    return at;
}

/** Gives the address that a link may lead to, or null. */
function target(text) {
    try {
        const url = new URL(text);
        return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
    } catch {
        return null;
    }
}

const linkTo = (href) => el("a", {href, title: href, target: "_blank", rel: "noopener noreferrer"});

/** Puts a link [text](address), or a link for a picture ![text](address). */
function putLink(parent, t, at, to, depth) {
    const open = t.text[at] === "!" ? at + 1 : at, key = `[ ${to}`;
    if (t.text[open] !== "[" || depth >= DEEPEST || t.dead.has(key)) return at;
    const middle = t.text.indexOf("](", open);
    if (middle < 0 || middle >= to) {
        t.dead.set(key, true);
        return at;
    }
    const end = t.text.indexOf(")", middle), inner = t.text.slice(open + 1, middle);
    if (end < 0 || end >= to || inner.length > 1000 || inner.includes("](")) return at;
    const href = target(t.text.slice(middle + 2, end).trim().split(/\s/)[0]);
    if (!href) return at;
    const link = linkTo(href);
    putInline(link, t, open + 1, middle, depth + 1);
    if (!link.textContent) link.textContent = href;
    parent.append(link);
    return end + 1;
}

/** Puts an address http://..., with or without <> around it. */
function putAddress(parent, t, at, to) {
    const from = at + (t.text[at] === "<");
    const match = /^https?:\/\/[^\s<>"`]{1,2000}/.exec(t.text.slice(from, Math.min(to, from + 2100)));
    if (!match) return at;
    const address = from > at ? match[0] : match[0].replace(/[.,:;!?'*_~)\]]+$/, "");
    const href = target(address), end = from + address.length;
    if (!href || (from > at && t.text[end] !== ">")) return at;
    const link = linkTo(href);
    t.put(link, from, end);
    parent.append(link);
    return from > at ? end + 1 : end;
}

function putSpecial(parent, t, at, to, depth) {
    const c = t.text[at];
    if (c === "\n") {
        parent.append(el("br"));
        return at + 1;
    }
    if (c === "$" || (c === "\\" && "([".includes(t.text[at + 1] || " "))) {
        const behind = putFormula(parent, t, at, to);
        if (behind > at || c === "$") return behind;
    }
    if (c === "\\" && /[!-/:-@[-`{-~]/.test(t.text[at + 1] ?? "")) {
        t.put(parent, at + 1, Math.min(at + 2, to));
        return at + 2;
    }
    if (c === "`") return putCode(parent, t, at, to);
    if (c === "[" || c === "!") return putLink(parent, t, at, to, depth);
    if (c === "<" || c === "h") return putAddress(parent, t, at, to);
    return putEmphasis(parent, t, at, to, depth);
}

function putInline(parent, t, from, to, depth) {
    let plain = from;
    for (let at = from; at < to;) {
        SPECIAL.lastIndex = at;
        const match = SPECIAL.exec(t.text);
        if (!match || match.index >= to) break;
        t.put(parent, plain, match.index);
        plain = match.index;
        at = putSpecial(parent, t, match.index, to, depth);
        if (at > match.index) {
            plain = at;
        } else {
            at = match.index + 1;
            while (at < to && t.text[at] === match[0] && "*_~".includes(match[0])) at++;
        }
    }
    t.put(parent, plain, to);
}

// --------------------------------------------------------------------------------------------------------------- whole

const built = new WeakMap(); // container -> [{key, element}]

/** Shows the source in the container. Blocks that did not change are left as they are. */
export function renderMarkdown(container, source, drafted) {
    const flags = flagsOf(source.length, drafted), lines = linesOf(source), before = built.get(container) ?? [];
    const blocks = [];
    for (let i = 0; i < lines.length;) {
        if (isBlank(lines[i])) {
            i++;
            continue;
        }
        const block = blockAt(lines, i), from = lines[i].at;
        const to = block.next < lines.length ? lines[block.next].at : source.length;
        const key = `${source.slice(from, to).trimEnd()}\0${flags.subarray(from, to).join("")}`;
        const old = before[blocks.length];
        blocks.push(old?.key === key ? old : {key, element: build(block, flags, 0)});
        i = block.next;
    }
    blocks.forEach((block, i) => {
        const there = container.children[i];
        if (there !== block.element) there ? there.replaceWith(block.element) : container.append(block.element);
    });
    while (container.children.length > blocks.length) container.lastElementChild.remove();
    built.set(container, blocks);
}

/** Shows a text without Markdown, with drafted parts in spans. */
export function renderPlain(container, source, drafted) {
    const text = new Text([{text: source, at: 0}], flagsOf(source.length, drafted));
    container.replaceChildren();
    text.put(container, 0, source.length);
}
