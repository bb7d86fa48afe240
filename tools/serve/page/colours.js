// Colours code by highlight.js, which the page loads from its own server when the first code appears.
//
// In: code, its language, and how a stretch of it is put into an element. Out: those stretches in spans of the kinds
// that highlight.js names; false, and nothing is put, where the language is unknown, the code very long, or the server
// was built without highlight.js.

import {el} from "./dom.js";

const LONGEST = 50000; // characters

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

/** highlight.js answers with HTML of spans with classes, and nothing else: it is read here, not parsed by the browser,
 *  so that nothing in it can become anything but a span or text. */
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
