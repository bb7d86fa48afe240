// Colours code by highlight.js, which the page loads from its own server when the first code appears.
//
// In: code, its language, and a function that puts a part of the code into an element. Out: all parts, in spans whose
// classes highlight.js names; false, and no part is put, if the language is unknown, the code is very long, or the
// server was built without highlight.js.

import {el} from "./dom.js";

const LONGEST = 50000; // the most characters of code that is coloured

let library = null, loading = null;

/** Resolves when highlight.js is loaded or can't be. */
export function coloursLoaded() {
    loading ??= import("./highlight.js").then(() => {
        library = window.hljs ?? null;
    }).catch(() => {});
    return loading;
}

export const hasColours = () => library !== null;

const ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&#39;": "'"};

/** Puts code into an element with the spans of highlight.js. highlight.js gives HTML that has only spans with classes:
 *  it is read here and not parsed by the browser, so that everything in it becomes a span or text. */
export function putColoured(parent, code, language, put) {
    if (!library?.getLanguage(language) || code.length > LONGEST) return false;
    const html = library.highlight(language, code, true).value, open = [el("span")];
    let at = 0;
    for (const [piece, kind] of html.matchAll(/<span class="([\w -]*)">|<\/span>|&[#\w]+;|[^<&]+|[<&]/g)) {
        if (kind !== undefined) {
            const span = el("span", {class: kind});
            open.at(-1).append(span);
            open.push(span);
        } else if (piece === "</span>" && open.length > 1) {
            open.pop();
        } else {
            const length = ENTITIES[piece] ? 1 : piece.length;
            put(open.at(-1), at, at + length);
            at += length;
        }
    }
    if (at !== code.length) return false;
    parent.append(...open[0].childNodes);
    return true;
}
