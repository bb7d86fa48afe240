// The settings' dialog, the light and dark theme, and the settings as members of a request.

import {ask, byId, el} from "./dom.js";
import {writeSettings} from "./store.js";

// Makes a field for a number: its id, its name, its limits, and its member in the server's API (sent). Fields with
// "more" are in a folded section.
const number = (key, sent, name, low, high, set = {}) => ({id: `set-${sent.replaceAll("_", "-")}`, key, name, low, high,
                                                          sent, ...set});
const FIELDS = [
    number("temperature", "temperature", "Temperature", 0, 100),
    number("topP", "top_p", "Top p", 0, 1),
    number("seed", "seed", "Seed", 0, 2 ** 32 - 1, {whole: true}),
    number("maxTokens", "max_tokens", "Most tokens", 1, 2 ** 31 - 1, {whole: true}),
    number("topK", "top_k", "Top k", 0, 1e6, {whole: true, more: true}),
    number("minP", "min_p", "Min p", 0, 1, {more: true}),
    number("typicalP", "typical_p", "Typical p", 0, 1, {more: true}),
    number("topNSigma", "top_n_sigma", "Top n sigma", -1, 100, {more: true}),
    number("repeatPenalty", "repeat_penalty", "Repeat penalty", 0.01, 10, {more: true}),
    number("repeatLastN", "repeat_last_n", "… in the last tokens", -1, 2 ** 31 - 1, {whole: true, more: true}),
    number("presencePenalty", "presence_penalty", "Presence penalty", -2, 2, {more: true}),
    number("frequencyPenalty", "frequency_penalty", "Frequency penalty", -2, 2, {more: true}),
    number("dryMultiplier", "dry_multiplier", "DRY multiplier", 0, 100, {more: true}),
    number("dryBase", "dry_base", "DRY base", 1, 100, {more: true}),
    number("dryAllowedLength", "dry_allowed_length", "DRY allowed length", 0, 1e6, {whole: true, more: true}),
    number("dryPenaltyLastN", "dry_penalty_last_n", "DRY in the last tokens", -1, 2 ** 31 - 1,
           {whole: true, more: true}),
    number("xtcProbability", "xtc_probability", "XTC probability", 0, 1, {more: true}),
    number("xtcThreshold", "xtc_threshold", "XTC threshold", 0, 1, {more: true}),
    number("dynatempRange", "dynatemp_range", "Temperature range", 0, 100, {more: true}),
    number("dynatempExponent", "dynatemp_exponent", "Temperature exponent", 0, 100, {more: true}),
    number("mirostat", "mirostat", "Mirostat (0 or 2)", 0, 2, {whole: true, more: true}),
    number("mirostatTau", "mirostat_tau", "Mirostat tau", 0, 100, {more: true}),
    number("mirostatEta", "mirostat_eta", "Mirostat eta", 0, 1, {more: true}),
    number("thinkingBudget", "reasoning_budget_tokens", "Thinking tokens at most", 0, 2 ** 31 - 1, {whole: true}),
];

/** Adds the fields to the dialog. */
export function buildSettings() {
    for (const field of FIELDS) {
        const input = el("input", {id: field.id, inputmode: field.whole ? "numeric" : "decimal", autocomplete: "off"});
        byId(field.more ? "more-fields" : "fields").append(el("label.field", {}, field.name, input));
    }
}

/** Gives the reason why a field's text is not valid, or "". */
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
    settings.samplers = byId("set-samplers").value.trim();
    settings.thinking = byId("set-thinking").value;
    settings.drafting = byId("set-drafting").checked;
    writeSettings(settings);
    return true;
}

/** Opens the dialog with the settings, which change if the user saves them. defaults: the server's values, shown as
 *  hints. */
export async function editSettings(settings, defaults) {
    for (const field of FIELDS) {
        byId(field.id).value = settings[field.key];
        byId(field.id).placeholder = defaults[field.key] ?? "";
    }
    byId("set-system").value = settings.system;
    byId("set-samplers").value = settings.samplers;
    byId("set-samplers").placeholder = defaults.samplers ?? "";
    byId("set-thinking").value = settings.thinking;
    byId("set-more").open = settings.samplers !== "" || FIELDS.some((field) => field.more && settings[field.key]);
    byId("set-drafting").checked = settings.drafting;
    byId("set-error").hidden = true;
    byId("set-save").onclick = (event) => {
        if (!save(settings)) event.preventDefault();
    };
    await ask(byId("settings"));
}

/** Gives the server's own values as texts. */
export function defaultsOf(props) {
    const params = props?.default_generation_settings?.params ?? {};
    const short = (value) => (Number.isFinite(value) ? String(Number(value.toFixed(4))) : "");
    return {
        ...Object.fromEntries(FIELDS.map((field) => [field.key, short(params[field.sent])])),
        samplers: Array.isArray(params.samplers) ? params.samplers.join(", ") : "",
        thinkingBudget: "no limit",
        seed: params.seed >= 0 ? String(params.seed) : "drawn",
        maxTokens: params.n_predict > 0 ? String(params.n_predict) : "no limit",
    };
}

/** Gives the settings as members of a request. */
export function requestOf(settings) {
    const body = {};
    for (const field of FIELDS) if (settings[field.key] !== "") body[field.sent] = Number(settings[field.key]);
    if (settings.samplers) body.samplers = settings.samplers.split(/[\s,;]+/);
    if (settings.thinking) body.chat_template_kwargs = {enable_thinking: settings.thinking === "on"};
    if (!settings.drafting) body["speculative.n_max"] = 0;
    return body;
}

const THEMES = {auto: ["auto", "Light or dark as the system is"], light: ["sun", "Light"], dark: ["moon", "Dark"]};

/** Shows the theme, and the button's icon for it. */
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
