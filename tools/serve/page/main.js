// The chat page: all conversations, the one that is open, and the answers that are being streamed.
//
// In: the user's actions, and the server's answers (api.js). Out: the page, and the browser's stored data (store.js).
// Each conversation may have one answer that is being streamed, also if another one is open.

import {chat, isReady, listModels, onKeyWanted, properties} from "./api.js";
import {setAside, turnTo} from "./branches.js";
import {announce, ask, byId, confirmed, download, el, icon, iconButton, newId} from "./dom.js";
import {addFiles, files, setFiles, takePaste, withFiles} from "./files.js";
import {MessageView} from "./messages.js";
import {addPictures, pictures, setPictures} from "./pictures.js";
import {showRounds} from "./rounds.js";
import {buildSettings, defaultsOf, editSettings, nextTheme, requestOf, showTheme} from "./settings.js";
import * as store from "./store.js";

const settings = store.readSettings();
const running = new Map(); // a conversation's id -> {controller, message}
let conversations = [], current = null, views = [], props = null, models = [];

const input = byId("input"), scroller = byId("scroll"), stage = byId("stage");

// --------------------------------------------------------------------------------------------------------- the server

const model = () => (models.length > 1 ? settings.model : "");
const sees = () => props?.modalities?.vision === true;

function notice(text) {
    byId("notice").hidden = !text;
    byId("notice").className = text ? "error" : "";
    byId("notice").textContent = text;
}

async function readProperties() {
    props = null;
    try {
        props = await properties(model());
        notice("");
    } catch (error) {
        notice(error.message);
    }
    byId("model").textContent = props?.model_alias ?? "forerun";
    byId("model").title = props ? `${props.model_ftype}, ${props.build_info}` : "";
    byId("empty-text").textContent = props
        ? `${props.model_alias} answers. This page asks its own server and nobody else.` : "";
    showContext();
    if (settings.showRounds) showRounds(true, props?.endpoint_slots === true, model());
}

/** Shows how much of the context the conversation fills, by the token counts of its last answer. */
function showContext() {
    const most = props?.default_generation_settings?.n_ctx ?? 0;
    const figures = current?.messages.findLast((message) => message.figures?.tokens)?.figures;
    const used = figures ? (figures.cached ?? 0) + (figures.prompt ?? 0) + figures.tokens : 0;
    byId("context").hidden = !used || !most;
    if (byId("context").hidden) return;
    const meter = byId("context-meter");
    Object.assign(meter, {max: most, high: 0.9 * most, value: used});
    byId("context-text").textContent = `${used.toLocaleString("en")} of ${most.toLocaleString("en")} tokens`;
}

function showModels() {
    const several = models.length > 1, names = models.map((one) => one.id);
    byId("models").hidden = !several;
    byId("model").hidden = several;
    if (!several) return;
    if (!names.includes(settings.model)) settings.model = names[0];
    byId("models").replaceChildren(...names.map((name) => el("option", {value: name}, name)));
    byId("models").value = settings.model;
}

async function connect() {
    for (let wait = 500; !(await isReady()); wait = Math.min(2 * wait, 5000)) {
        notice("The model is being loaded, or the server is away.");
        await new Promise((resolve) => setTimeout(resolve, wait));
    }
    notice("");
    try {
        models = await listModels();
        showModels();
    } catch (error) {
        notice(error.message);
        return;
    }
    await readProperties();
}

onKeyWanted(async (again) => {
    byId("key-text").textContent = again ? "That key is none of the server's." : "It is kept until this tab is closed.";
    byId("key-input").value = "";
    if (byId("key").open) return "";
    return (await ask(byId("key"))) === "yes" ? byId("key-input").value.trim() : "";
});

// ------------------------------------------------------------------------------------------------------ conversations

async function keep(conversation) {
    const answer = running.get(conversation.id)?.message;
    const messages = conversation.messages.map((message) => message !== answer ? message
        : {...message, note: "The page was left before this answer had ended."});
    try {
        await store.saveConversation({...conversation, messages});
    } catch (error) {
        notice(`The browser did not keep this conversation: ${error.message}`);
    }
}

function touch(conversation) {
    conversation.changed = Date.now();
    conversations = [conversation, ...conversations.filter((one) => one !== conversation)];
    listConversations();
    return keep(conversation);
}

function titleOf(conversation) {
    const first = conversation.messages.find((message) => message.role === "user");
    const text = first?.content.trim().replace(/\s+/g, " ") || (first?.files?.[0]?.name ?? "");
    if (!text) return first ? "Picture" : "New conversation";
    return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function rename(conversation, item) {
    const field = el("input.rename", {"aria-label": "Name of the conversation"});
    let done = false;
    const close = (save) => {
        if (done) return;
        done = true;
        const title = field.value.trim();
        if (save && title && title !== conversation.title) {
            conversation.title = title;
            conversation.named = true;
            keep(conversation);
        }
        listConversations();
        byId("conversations").querySelector(`[data-id="${conversation.id}"] .open-chat`)?.focus();
    };
    field.value = conversation.title;
    field.addEventListener("blur", () => close(true));
    field.addEventListener("keydown", (event) => {
        if (event.key === "Enter") close(true);
        if (event.key === "Escape") {
            event.stopPropagation();
            close(false);
        }
    });
    item.replaceChildren(field);
    field.focus();
    field.select();
}

async function remove(conversation) {
    if (!(await confirmed("Delete this conversation?", `“${conversation.title}” is gone then.`, "Delete"))) return;
    running.get(conversation.id)?.controller.abort();
    conversations = conversations.filter((one) => one !== conversation);
    await store.deleteConversation(conversation.id).catch((error) => notice(error.message));
    if (current === conversation) show(null);
    else listConversations();
    announce("Deleted");
}

function itemOf(conversation) {
    const is = conversation === current, item = el("li", {"data-id": conversation.id, "data-current": is});
    const open = el("button.open-chat", {type: "button", "aria-current": is ? "page" : null, title: conversation.title,
                                         click: () => show(conversation)}, conversation.title);
    item.append(open, el("span.chat-tools", {},
        iconButton("edit", `Rename ${conversation.title}`, () => rename(conversation, item)),
        iconButton("trash", `Delete ${conversation.title}`, () => remove(conversation))));
    return item;
}

const holds = (messages, word) => messages.some((message) => message.content.toLowerCase().includes(word) ||
    message.branches?.some((rest) => holds(rest, word)));

/** Lists all conversations, or those whose names or messages contain the searched text. */
function listConversations() {
    const word = byId("search").value.trim().toLowerCase();
    const found = conversations.filter((one) => !word || one.title.toLowerCase().includes(word) ||
                                                holds(one.messages, word));
    byId("conversations").replaceChildren(...found.map(itemOf));
}

/** Opens a conversation; null: a new one. */
function show(conversation) {
    current = conversation;
    closeMenu();
    listConversations();
    views = (current?.messages ?? []).map(viewOf);
    byId("messages").replaceChildren(...views.map((view) => view.element));
    byId("empty").hidden = views.length > 0;
    document.title = current ? `${current.title} – forerun` : "forerun";
    history.replaceState(null, "", current ? `#${current.id}` : location.pathname);
    showSending();
    showContext();
    scrollDown(true);
    if (!matchMedia("(hover: none)").matches) input.focus();
}

function step(by) {
    const at = conversations.indexOf(current), next = conversations[at + by];
    if (next) show(next);
}

// ------------------------------------------------------------------------------------------------------------ messages

let pinned = true;
scroller.addEventListener("scroll", () => {
    pinned = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 48;
}, {passive: true});

function scrollDown(always) {
    if (always || pinned) scroller.scrollTop = scroller.scrollHeight;
    if (always) pinned = true;
}

function viewOf(message) {
    const conversation = current;
    return new MessageView(message, {
        edit: (changed, text) => edit(conversation, changed, text),
        again: (old) => again(conversation, old),
        goOn: (cut) => goOn(conversation, cut),
        turn: (at, by) => turn(conversation, at, by),
    });
}

function append(conversation, message) {
    conversation.messages.push(message);
    if (conversation !== current) return null;
    const view = viewOf(message);
    views.push(view);
    byId("messages").append(view.element);
    byId("empty").hidden = true;
    return view;
}

/** Keeps the first `count` messages and stores the others as a branch. Gives the members for the next message. */
function branchOff(conversation, count) {
    const branches = setAside(conversation, count);
    if (conversation === current) for (const view of views.splice(count)) view.element.remove();
    return branches;
}

async function turn(conversation, message, by) {
    if (running.has(conversation.id) || !turnTo(conversation, message, by)) return;
    if (conversation === current) show(conversation);
    await keep(conversation);
}

async function edit(conversation, message, text) {
    const at = conversation.messages.indexOf(message);
    if (at < 0) return;
    if (message.role === "assistant") {
        Object.assign(message, {content: text, drafted: []});
        views[at]?.update(false);
        await touch(conversation);
        return;
    }
    await stop(conversation);
    const {id, branches: others, branch, ...rest} = message, branches = branchOff(conversation, at);
    append(conversation, {...rest, id: newId(), content: text, ...branches});
    if (!conversation.named) conversation.title = titleOf(conversation);
    await answer(conversation);
}

async function again(conversation, message) {
    const at = conversation?.messages.indexOf(message) ?? -1;
    if (at < 1) return;
    await stop(conversation);
    await answer(conversation, branchOff(conversation, at));
}

/** Continues an answer that was stopped or cut off. */
async function goOn(conversation, message) {
    if (running.has(conversation.id) || conversation.messages.at(-1) !== message) return;
    const body = bodyOf(conversation), begun = body.messages.at(-1);
    if (message.reasoning) begun.reasoning_content = message.reasoning;
    await stream(conversation, message, {...body, continue_final_message: true, add_generation_prompt: false});
}

// ------------------------------------------------------------------------------------------------------------- answers

function wireOf(message) {
    const content = withFiles(message.content, message.files ?? []);
    if (!message.pictures?.length) return {role: message.role, content};
    const parts = message.pictures.map((url) => ({type: "image_url", image_url: {url}}));
    if (content) parts.push({type: "text", text: content});
    return {role: message.role, content: parts};
}

function bodyOf(conversation) {
    const said = conversation.messages.filter((message) => message.role === "user" || message.content);
    const system = settings.system.trim() ? [{role: "system", content: settings.system}] : [];
    const body = {messages: [...system, ...said.map(wireOf)], ...requestOf(settings)};
    if (model()) body.model = model();
    return body;
}

/** Appends text to a part of the answer. drafted: the text came from accepted drafts. */
function grow(message, part, marks, text, drafted) {
    const from = message[part].length, ranges = message[marks];
    message[part] += text;
    if (!drafted) return;
    if (ranges.length && ranges.at(-1) === from) ranges[ranges.length - 1] = from + text.length;
    else ranges.push(from, from + text.length);
}

function take(message, chunk) {
    const choice = chunk.choices?.[0], delta = choice?.delta ?? {}, timings = chunk.timings;
    if (delta.reasoning_content) {
        grow(message, "reasoning", "reasoningDrafted", delta.reasoning_content, chunk.drafted);
    }
    if (delta.content) grow(message, "content", "drafted", delta.content, chunk.drafted);
    if (choice?.finish_reason === "length") {
        Object.assign(message, {note: "The answer was cut: no more tokens were allowed, or fit.", more: true});
    }
    if (!timings) return;
    message.figures = {
        tokens: timings.predicted_n, seconds: timings.predicted_ms / 1000, prompt: timings.prompt_n,
        cached: timings.cache_n ?? 0, wait: timings.prompt_ms, accepted: timings.draft_n_accepted ?? 0,
        drafted: timings.draft_n ?? 0,
    };
}

/** Shows an answer while it grows, once for each frame, if its conversation is open; and stores it from time to
 *  time. */
class Growth {
    constructor(conversation, message) {
        Object.assign(this, {conversation, message, frame: 0, kept: performance.now()});
    }

    changed() {
        this.frame ||= requestAnimationFrame(() => this.show(true));
        if (performance.now() - this.kept < 2000) return;
        this.kept = performance.now();
        keep(this.conversation);
    }

    show(streaming) {
        cancelAnimationFrame(this.frame);
        this.frame = 0;
        if (this.conversation !== current) return;
        views.find((view) => view.message === this.message)?.update(streaming);
        scrollDown(false);
    }
}

async function answer(conversation, branches = {}) {
    const message = {id: newId(), role: "assistant", content: "", reasoning: "", drafted: [], reasoningDrafted: [],
                     figures: {}, note: "", error: "", ...branches};
    const body = bodyOf(conversation);
    append(conversation, message);
    await stream(conversation, message, body);
}

/** Streams the answer to a conversation into its last message. */
async function stream(conversation, message, body) {
    const controller = new AbortController(), growth = new Growth(conversation, message);
    let ended;
    Object.assign(message, {note: "", error: ""});
    delete message.more;
    running.set(conversation.id, {controller, message, ended: new Promise((resolve) => (ended = resolve))});
    growth.show(true);
    showSending();
    scrollDown(true);
    announce("Answering");
    touch(conversation);
    try {
        for await (const chunk of chat(body, controller.signal)) {
            take(message, chunk);
            growth.changed();
        }
    } catch (error) {
        if (controller.signal.aborted) Object.assign(message, {note: "Stopped.", more: message.content !== ""});
        else message.error = error.message;
    }
    if (!message.more) delete message.more;
    if (running.get(conversation.id)?.message === message) running.delete(conversation.id);
    ended();
    growth.show(false);
    showSending();
    showContext();
    if (conversation === current) {
        announce(message.error || `Answer: ${message.content.slice(0, 1000)} ${message.note}`);
    }
    if (conversations.includes(conversation)) await touch(conversation);
}

/** Stops the running answer; resolves when it has stopped. */
async function stop(conversation) {
    const answering = running.get(conversation?.id);
    answering?.controller.abort();
    await answering?.ended;
}

// ------------------------------------------------------------------------------------------------------------ composer

const isEmpty = () => !input.value.trim() && pictures().length === 0 && files().length === 0;

function showSending() {
    const busy = running.has(current?.id), button = byId("send");
    button.replaceChildren(icon(busy ? "stop" : "send"));
    button.title = busy ? "Stop (Esc)" : "Send (Enter)";
    button.setAttribute("aria-label", busy ? "Stop" : "Send");
    button.disabled = !busy && isEmpty();
}

function fit() {
    input.style.height = "auto";
    input.style.height = `${input.scrollHeight}px`;
    showSending();
}

async function send() {
    const text = input.value.trim();
    if (running.has(current?.id) || isEmpty()) return;
    if (!current) {
        current = {id: newId(), title: "", named: false, created: Date.now(), changed: Date.now(), messages: []};
        history.replaceState(null, "", `#${current.id}`);
    }
    const conversation = current;
    const attached = files().length ? {files: files()} : {};
    append(conversation, {id: newId(), role: "user", content: text, pictures: pictures(), ...attached});
    if (!conversation.named) conversation.title = titleOf(conversation);
    document.title = `${conversation.title} – forerun`;
    input.value = "";
    setPictures([]);
    setFiles([]);
    fit();
    notice("");
    await answer(conversation);
}

async function takeFiles(list) {
    const chosen = [...list];
    const shown = chosen.filter((file) => file.type.startsWith("image/") && file.type !== "image/svg+xml");
    const wrong = await addFiles(chosen.filter((file) => !shown.includes(file)));
    if (shown.length && !sees()) notice("This model doesn't see pictures.");
    else notice(wrong || (await addPictures(shown)));
}

byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    if (running.has(current?.id)) stop(current);
    else send();
});

input.addEventListener("input", fit);
input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        send();
    } else if (event.key === "ArrowUp" && !event.altKey && input.value === "") {
        const last = views.findLast((view) => view.message.role === "user");
        if (!last) return;
        event.preventDefault();
        last.edit();
    }
});

input.addEventListener("paste", (event) => {
    const pasted = event.clipboardData;
    if (pasted.files.length > 0) takeFiles(pasted.files);
    else if (!takePaste(pasted.getData("text/plain"))) return;
    event.preventDefault();
});

byId("attach").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", async () => {
    await takeFiles(byId("file").files);
    byId("file").value = "";
});

const carriesFiles = (event) => event.dataTransfer.types.includes("Files");
stage.addEventListener("dragover", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    stage.classList.add("dropping");
});
stage.addEventListener("dragleave", () => stage.classList.remove("dropping"));
stage.addEventListener("drop", (event) => {
    stage.classList.remove("dropping");
    if (!carriesFiles(event)) return;
    event.preventDefault();
    takeFiles(event.dataTransfer.files);
});

// ----------------------------------------------------------------------------------------------------- what is around

function closeMenu() {
    document.body.classList.remove("menu-open");
    byId("backdrop").hidden = true;
    stage.inert = false;
    byId("menu").setAttribute("aria-expanded", "false");
}

function openMenu() {
    document.body.classList.add("menu-open");
    byId("backdrop").hidden = false;
    stage.inert = true;
    byId("menu").setAttribute("aria-expanded", "true");
    byId("new-chat").focus();
}

function showDrafts() {
    document.body.classList.toggle("show-drafts", settings.showDrafts);
    byId("drafts").setAttribute("aria-pressed", settings.showDrafts);
}

function toggleDrafts() {
    settings.showDrafts = !settings.showDrafts;
    store.writeSettings(settings);
    showDrafts();
    announce(settings.showDrafts ? "Accepted drafts are coloured" : "Drafts are not coloured");
}

function toggleRounds() {
    settings.showRounds = !settings.showRounds;
    store.writeSettings(settings);
    showRounds(settings.showRounds, props?.endpoint_slots === true, model());
}

function regenerate() {
    const last = views.at(-1)?.message;
    if (last?.role === "assistant") again(current, last);
}

async function exportAll() {
    const day = new Date().toISOString().slice(0, 10);
    download(`forerun-${day}.json`, "application/json", store.toFile(conversations));
}

async function importFile(file) {
    try {
        const read = store.fromFile(await file.text());
        for (const conversation of read) await store.saveConversation(conversation);
        conversations = await store.allConversations();
        byId("settings").close();
        show(conversations.find((one) => one.id === current?.id) ?? null);
        announce(`${read.length} conversations were read`);
    } catch (error) {
        byId("set-error").hidden = false;
        byId("set-error").textContent = `${file.name}: ${error.message}`;
    }
}

async function deleteAll() {
    byId("settings").close();
    const count = conversations.length;
    const text = count === 1 ? "One conversation is gone then." : `All ${count} of them are gone then.`;
    if (count === 0 || !(await confirmed("Delete all conversations?", text, "Delete all"))) return;
    for (const {controller} of running.values()) controller.abort();
    conversations = [];
    await store.deleteConversations().catch((error) => notice(error.message));
    show(null);
}

const openSettings = () => editSettings(settings, defaultsOf(props));

byId("search").addEventListener("input", listConversations);
byId("new-chat").addEventListener("click", () => show(null));
byId("menu").addEventListener("click", openMenu);
byId("backdrop").addEventListener("click", closeMenu);
byId("drafts").addEventListener("click", toggleDrafts);
byId("live").addEventListener("click", toggleRounds);
byId("close-rounds").addEventListener("click", () => {
    toggleRounds();
    byId("live").focus();
});
byId("theme").addEventListener("click", () => {
    nextTheme(settings);
    showTheme(settings, icon);
});
byId("open-settings").addEventListener("click", openSettings);
byId("open-shortcuts").addEventListener("click", () => ask(byId("shortcuts")));
byId("export").addEventListener("click", exportAll);
byId("import").addEventListener("click", () => byId("import-file").click());
byId("delete-all").addEventListener("click", deleteAll);
byId("import-file").addEventListener("change", async () => {
    const [file] = byId("import-file").files;
    byId("import-file").value = "";
    if (file) await importFile(file);
});
byId("models").addEventListener("change", async () => {
    settings.model = byId("models").value;
    store.writeSettings(settings);
    await readProperties();
});
document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    input.focus();
});

/** Handles the Escape key: an answer that is being streamed ends first; otherwise the topmost overlay is closed. */
function escape() {
    if (running.has(current?.id)) {
        stop(current);
    } else if (document.body.classList.contains("menu-open")) {
        closeMenu();
        byId("menu").focus();
    } else if (settings.showRounds && matchMedia("(max-width: 1100px)").matches) {
        toggleRounds();
    }
}

for (const button of document.querySelectorAll("[data-close]"))
    button.addEventListener("click", () => button.closest("dialog").close());

const SHORTCUTS = {
    KeyN: () => show(null), KeyR: regenerate, KeyD: toggleDrafts, KeyL: toggleRounds, Comma: openSettings,
    KeyK: () => ask(byId("shortcuts")), KeyM: () => input.focus(), ArrowUp: () => step(-1), ArrowDown: () => step(1),
};

document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
        escape();
        return;
    }
    const act = SHORTCUTS[event.code];
    if (!event.altKey || event.ctrlKey || event.metaKey || !act) return;
    event.preventDefault();
    act();
});

// ----------------------------------------------------------------------------------------------------------- beginning

async function begin() {
    buildSettings();
    showTheme(settings, icon);
    showDrafts();
    try {
        conversations = await store.allConversations();
    } catch (error) {
        notice(`The browser keeps no conversations: ${error.message}`);
    }
    const asked = new URLSearchParams(location.search).get("q");
    show(asked ? null : conversations.find((one) => one.id === location.hash.slice(1)) ?? null);
    await connect();
    if (!asked) return;
    input.value = asked; // from ?q=, which a browser's search field fills in
    fit();
    await send();
}

begin();
