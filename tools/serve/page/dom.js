// Small helpers for building the page: elements, icons, the clipboard, and announcements for screen readers.
//
// Text goes into the page only as text nodes: no code here or elsewhere parses markup.

const SVG = "http://www.w3.org/2000/svg";

/** Makes an element: el("button.quiet", {type: "button"}, "Save", icon("check")). Members of `set` that are functions
 *  become listeners, true and false become boolean attributes, and others attributes. */
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

/** Makes one of the symbols in index.html. */
export function icon(name) {
    const svg = document.createElementNS(SVG, "svg");
    const use = document.createElementNS(SVG, "use");
    svg.setAttribute("class", "icon");
    svg.setAttribute("aria-hidden", "true");
    use.setAttribute("href", `#i-${name}`);
    svg.append(use);
    return svg;
}

/** Makes a button that is an icon, with its meaning as label and tooltip. */
export function iconButton(name, label, pressed) {
    return el("button.icon-button", {type: "button", title: label, "aria-label": label, click: pressed}, icon(name));
}

export const byId = (id) => document.getElementById(id);

/** Makes an id that no other conversation or message has. (Only secure origins have randomUUID.) */
export function newId() {
    const bytes = crypto.getRandomValues(new Uint8Array(12));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Copies a text; true if that worked. (Only secure origins have navigator.clipboard.) */
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

/** Makes a button that copies the text that `text` gives, and shows for a moment that it was copied. */
export function copyButton(label, text) {
    const button = iconButton("copy", label, async () => {
        const copied = await copyText(text());
        button.replaceChildren(icon(copied ? "check" : "cross"));
        announce(copied ? "Copied" : "The browser did not let the page copy");
        setTimeout(() => button.replaceChildren(icon("copy")), 1400);
    });
    return button;
}

/** Announces a text to screen readers. */
export function announce(text) {
    byId("status").textContent = text;
}

/** Downloads a text as a file. */
export function download(name, type, text) {
    const url = URL.createObjectURL(new Blob([text], {type}));
    el("a", {href: url, download: name}).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** Opens one of the dialogs in index.html; gives the value of the button that closed it, or "" if none did. */
export function ask(dialog) {
    return new Promise((resolve) => {
        dialog.returnValue = "";
        dialog.addEventListener("close", () => resolve(dialog.returnValue), {once: true});
        dialog.showModal();
    });
}

/** Asks the user to confirm an action that can't be undone. */
export async function confirmed(title, text, action) {
    byId("confirm-title").textContent = title;
    byId("confirm-text").textContent = text;
    byId("confirm-yes").textContent = action;
    return (await ask(byId("confirm"))) === "yes";
}
