// Draws the TeX formulas of models by KaTeX, which the page loads from its own server when the first one appears.
//
// In: the source between its marks, and a flag that tells if it has lines of its own. Out: an element, which shows the
// source until KaTeX is loaded. It continues to show the source if the server was built without KaTeX or the source is
// not TeX.

import {el} from "./dom.js";

// These settings stop a formula from loading files, adding links, or growing without bound.
const OPTIONS = {throwOnError: true, trust: false, strict: "ignore", maxSize: 30, maxExpand: 500};

let library = null, loading = null;

function load() {
    loading ??= import("./katex.mjs").then((module) => {
        document.head.append(el("link", {rel: "stylesheet", href: "page/katex.css"}));
        library = module.default;
    }).catch(() => {});
    return loading;
}

function set(element, source, display) {
    try {
        library.render(source, element, {...OPTIONS, displayMode: display});
    } catch {
        element.textContent = source;
    }
}

export function formula(source, display) {
    const element = el(display ? "span.formula.display" : "span.formula", {"data-tex": source}, source);
    if (library) set(element, source, display);
    else load().then(() => library && set(element, source, display));
    return element;
}
