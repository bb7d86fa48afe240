// Small helpers for building the page: elements, icons, the clipboard, and what a screen reader is told.
//
// Text goes into the page as text nodes alone: nothing here, or elsewhere, parses markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element: el("button.quiet", {type: "button"}, "Save", icon("check")). Members of `set` that are functions are
 *  listeners, true and false are boolean attributes, others attributes. */
export function el(what, set = {}, ...children) {
    const [name, ...classes] = what.split(".");
    const element = document.createElement(name);
    if (classes.length) element.className = classes.join(" ");
    for (const [key, value] of Object.entries(set)) {
        if (typeof value === "function") element.addEventListener(key, value);
        else if (value === true) element.setAttribute(key, "");
        else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
}

/** One of the symbols in index.html. */
export function icon(name) {
    const svg = document.createElementNS(SVG, "svg");
    const use = document.createElementNS(SVG, "use");
    svg.setAttribute("class", "icon");
    svg.setAttribute("aria-hidden", "true");
    use.setAttribute("href", `#i-${name}`);
    svg.append(use);
    return svg;
}

/** A button that is an icon, with its meaning as label and hint. */
export function iconButton(name, label, pressed) {
    return el("button.icon-button", {type: "button", title: label, "aria-label": label, click: pressed}, icon(name));
}

export const byId = (id) => document.getElementById(id);

/** An id that no other conversation or message has. (randomUUID is there for secure origins alone.) */
export function newId() {
    const bytes = crypto.getRandomValues(new Uint8Array(12));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Copies a text; gives whether it could. (Only secure origins have a clipboard of their own.) */
export async function copyText(text) {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        const area = el("textarea.off-screen", {"aria-hidden": "true", tabindex: "-1"});
        const before = document.activeElement;
        area.value = text;
        document.body.append(area);
        area.select();
        const copied = document.execCommand("copy");
        area.remove();
        before?.focus({preventScroll: true});
        return copied;
    }
}

/** A button that copies what `text` gives, and shows for a moment that it has. */
export function copyButton(label, text) {
    const button = iconButton("copy", label, async () => {
        const copied = await copyText(text());
        button.replaceChildren(icon(copied ? "check" : "cross"));
        announce(copied ? "Copied" : "The browser did not let the page copy");
        setTimeout(() => button.replaceChildren(icon("copy")), 1400);
    });
    return button;
}

/** Says it to a screen reader. */
export function announce(text) {
    byId("status").textContent = text;
}

/** Downloads a text as a file. */
export function download(name, type, text) {
    const url = URL.createObjectURL(new Blob([text], {type}));
    el("a", {href: url, download: name}).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** Asks by one of the dialogs in index.html; the value of the button that closed it, "" for none. */
export function ask(dialog) {
    return new Promise((resolve) => {
        dialog.returnValue = "";
        dialog.addEventListener("close", () => resolve(dialog.returnValue), {once: true});
        dialog.showModal();
    });
}

/** Asks whether to go on with something that can't be undone. */
export async function confirmed(title, text, action) {
    byId("confirm-title").textContent = title;
    byId("confirm-text").textContent = text;
    byId("confirm-yes").textContent = action;
    return (await ask(byId("confirm"))) === "yes";
}
