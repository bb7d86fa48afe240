// Text files for the next message: chosen, dropped, or made from a long pasted text.
//
// In: files. Out: {name, text} for each, and the message for the model with the files in it.

import {byId, el, iconButton} from "./dom.js";

const MOST = 16, LARGEST = 1 << 20; // the most files, and the most bytes of one
const LONG_PASTE = 4000; // a pasted text of at least this many characters becomes a file

let waiting = [];

const number = (value) => value.toLocaleString("en");

/** Makes the element that shows a file: its name and its length. */
export function chip(file, ...more) {
    return el("div.file", {title: file.text.slice(0, 400)}, el("span.file-name", {}, file.name),
              el("span.file-size", {}, `${number(file.text.length)} characters`), ...more);
}

function show() {
    byId("files").replaceChildren(...waiting.map((file, i) =>
        chip(file, iconButton("cross", `Remove ${file.name}`, () => setFiles(waiting.filter((_, k) => k !== i))))));
    byId("files").hidden = waiting.length === 0;
    byId("input").dispatchEvent(new Event("input"));
}

export const files = () => waiting;

export function setFiles(list) {
    waiting = list;
    show();
}

/** Adds files. Gives the reason why one can't be added, or "". */
export async function addFiles(list) {
    for (const file of list) {
        if (waiting.length === MOST) return `A message takes ${MOST} files.`;
        if (file.size > LARGEST) return `${file.name} is larger than ${number(LARGEST)} bytes.`;
        try {
            const text = new TextDecoder("utf-8", {fatal: true}).decode(await file.arrayBuffer());
            if (text.includes("\0")) throw new TypeError("a NUL");
            setFiles([...waiting, {name: file.name, text}]);
        } catch {
            return `${file.name} is no text in UTF-8.`;
        }
    }
    return "";
}

/** Turns a long pasted text into a file. Gives false for a shorter text, which then goes into the message. */
export function takePaste(text) {
    if (text.length < LONG_PASTE || waiting.length === MOST) return false;
    setFiles([...waiting, {name: "pasted.txt", text}]);
    return true;
}

/** Gives the message with its files before it, each in a fence that none of the file's lines can close. */
export function withFiles(content, list) {
    const parts = list.map(({name, text}) => {
        const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([ticks]) => ticks.length));
        const fence = "`".repeat(longest + 1);
        return `${name}:\n${fence}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}\n`;
    });
    return [...parts, content].filter((part) => part !== "").join("\n");
}
