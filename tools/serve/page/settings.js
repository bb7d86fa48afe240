// The settings' dialog, light and dark, and what of the settings goes into a request.

import {ask, byId} from "./dom.js";
import {writeSettings} from "./store.js";

// Texts of numbers: id, member, from, to, whole, what the server calls it.
const FIELDS = [
    {id: "set-temperature", key: "temperature", name: "Temperature", low: 0, high: 100, sent: "temperature"},
    {id: "set-top-p", key: "topP", name: "Top p", low: 0, high: 1, sent: "top_p"},
    {id: "set-seed", key: "seed", name: "The seed", low: 0, high: 2 ** 32 - 1, whole: true, sent: "seed"},
    {id: "set-max-tokens", key: "maxTokens", name: "The longest answer", low: 1, high: 2 ** 31 - 1, whole: true,
     sent: "max_tokens"},
];

/** What is wrong with a field's text, or "". */
function wrong(field, text) {
    const value = Number(text);
    if (text === "") return "";
    if (!Number.isFinite(value) || (field.whole && !Number.isInteger(value))) {
        return `${field.name} must be a ${field.whole ? "whole " : ""}number.`;
    }
    return value < field.low || value > field.high ? `${field.name} goes from ${field.low} to ${field.high}.` : "";
}

function save(settings) {
    const texts = FIELDS.map((field) => byId(field.id).value.trim().replace(",", "."));
    const at = FIELDS.findIndex((field, i) => wrong(field, texts[i]));
    byId("set-error").hidden = at < 0;
    if (at >= 0) {
        byId("set-error").textContent = wrong(FIELDS[at], texts[at]);
        byId(FIELDS[at].id).focus();
        return false;
    }
    FIELDS.forEach((field, i) => (settings[field.key] = texts[i]));
    settings.system = byId("set-system").value;
    settings.drafting = byId("set-drafting").checked;
    writeSettings(settings);
    return true;
}

/** Opens the dialog on the settings, which it changes if they are saved; defaults: the server's, to be hinted at. */
export async function editSettings(settings, defaults) {
    for (const field of FIELDS) {
        byId(field.id).value = settings[field.key];
        byId(field.id).placeholder = defaults[field.key] ?? "";
    }
    byId("set-system").value = settings.system;
    byId("set-drafting").checked = settings.drafting;
    byId("set-error").hidden = true;
    byId("set-save").onclick = (event) => {
        if (!save(settings)) event.preventDefault();
    };
    await ask(byId("settings"));
}

/** The server's own values, as texts. */
export function defaultsOf(props) {
    const params = props?.default_generation_settings?.params ?? {};
    const short = (value) => (value === undefined ? "" : String(Number(value.toFixed(4))));
    return {
        temperature: short(params.temperature),
        topP: short(params.top_p),
        seed: params.seed >= 0 ? String(params.seed) : "drawn",
        maxTokens: params.n_predict > 0 ? String(params.n_predict) : "no limit",
    };
}

/** Members of a request. */
export function requestOf(settings) {
    const body = {};
    for (const field of FIELDS) if (settings[field.key] !== "") body[field.sent] = Number(settings[field.key]);
    if (!settings.drafting) body["speculative.n_max"] = 0;
    return body;
}

const THEMES = {auto: ["auto", "Light or dark as the system is"], light: ["sun", "Light"], dark: ["moon", "Dark"]};

/** Shows the theme, and what the button has. */
export function showTheme(settings, icon) {
    const [name, label] = THEMES[settings.theme] ?? THEMES.auto, button = byId("theme");
    document.documentElement.dataset.theme = settings.theme;
    button.replaceChildren(icon(name));
    button.title = label;
    button.setAttribute("aria-label", `Theme: ${label}`);
}

export function nextTheme(settings) {
    const names = Object.keys(THEMES);
    settings.theme = names[(names.indexOf(settings.theme) + 1) % names.length];
    writeSettings(settings);
}
