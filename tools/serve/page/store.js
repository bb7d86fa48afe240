// Stores the page's data in the browser: conversations in IndexedDB, because pictures can be large, and settings in
// local storage.
//
// A conversation is {id, title, named, created, changed, messages}; a message is {id, role, content, ...}. A user's
// message has "pictures", data URLs, and "files", {name, text}. The assistant's has "reasoning"; "drafted" and
// "reasoningDrafted" (from and to of each range of accepted drafts, one after the other); "figures"; "note", the
// reason why it ended; "error"; and "more", if it may be continued. Both may have "branches" and "branch"
// (branches.js).

const NAME = "forerun", STORE = "conversations", SETTINGS = "forerun.settings";
let opened = null;

function open() {
    opened ??= new Promise((resolve, reject) => {
        const request = indexedDB.open(NAME, 1);
        request.onupgradeneeded = () => request.result.createObjectStore(STORE, {keyPath: "id"});
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
    return opened;
}

async function run(mode, work) {
    const database = await open();
    return new Promise((resolve, reject) => {
        const transaction = database.transaction(STORE, mode);
        const request = work(transaction.objectStore(STORE));
        transaction.oncomplete = () => resolve(request?.result);
        transaction.onerror = transaction.onabort = () => reject(transaction.error);
    });
}

/** Gives all conversations, the last changed one first. */
export async function allConversations() {
    const all = await run("readonly", (store) => store.getAll());
    return all.sort((a, b) => b.changed - a.changed);
}

export const saveConversation = (conversation) => run("readwrite", (store) => store.put(conversation));
export const deleteConversation = (id) => run("readwrite", (store) => store.delete(id));
export const deleteConversations = () => run("readwrite", (store) => store.clear());

export const usual = {
    temperature: "", topK: "", topP: "", minP: "", typicalP: "", topNSigma: "", dynatempRange: "", dynatempExponent: "",
    xtcProbability: "", xtcThreshold: "", repeatPenalty: "", repeatLastN: "", presencePenalty: "", frequencyPenalty: "",
    dryMultiplier: "", dryBase: "", dryAllowedLength: "", dryPenaltyLastN: "", mirostat: "", mirostatTau: "",
    mirostatEta: "", samplers: "", maxTokens: "", seed: "", thinking: "", thinkingBudget: "", system: "",
    drafting: true, theme: "auto", showDrafts: false, showRounds: false, model: "",
};

/** Gives the stored settings. Unknown ones, and those of another type, are ignored. */
export function readSettings() {
    const settings = {...usual};
    try {
        const kept = JSON.parse(localStorage.getItem(SETTINGS)) ?? {};
        for (const key of Object.keys(usual)) if (typeof kept[key] === typeof usual[key]) settings[key] = kept[key];
    } catch { /* settings that can't be read count as missing */ }
    return settings;
}

export function writeSettings(settings) {
    localStorage.setItem(SETTINGS, JSON.stringify(settings));
}

/** Writes conversations as a file, and reads them from one. Anything in the file that is not a conversation is
 *  ignored, and the rest has the members above and no others. */
export function toFile(conversations) {
    return JSON.stringify({format: "forerun conversations 1", conversations}, null, 1);
}

const text = (value) => (typeof value === "string" ? value : "");
const whole = (value) => (Number.isSafeInteger(value) && value >= 0 ? value : 0);
const numbers = (value) => (Array.isArray(value) ? value.map(whole) : []);
const isPicture = (value) => /^data:image\/(png|jpeg|webp|gif);base64,[A-Za-z0-9+/=]*$/.test(text(value));

const filesOf = (value) => (Array.isArray(value) ? value : []).filter((file) => text(file?.name) && text(file.text))
    .map(({name, text: said}) => ({name, text: said}));

const DEEPEST = 64; // the most nested branches

const messagesOf = (values, depth) => values.map((value) => messageOf(value, depth)).filter((m) => m !== null);

function messageOf(value, depth) {
    const message = plainMessageOf(value);
    if (!message || !Array.isArray(value.branches) || depth >= DEEPEST) return message;
    const branches = value.branches.filter(Array.isArray).map((rest) => messagesOf(rest, depth + 1))
        .filter((rest) => rest.length > 0);
    return branches.length === 0 ? message
        : Object.assign(message, {branches, branch: Math.min(whole(value.branch), branches.length)});
}

function plainMessageOf(value) {
    if (value?.role === "user") {
        const pictures = Array.isArray(value.pictures) ? value.pictures.filter(isPicture) : [];
        const message = {id: text(value.id), role: "user", content: text(value.content), pictures};
        const files = filesOf(value.files);
        return files.length ? {...message, files} : message;
    }
    if (value?.role !== "assistant") return null;
    const figures = {};
    for (const key of ["tokens", "seconds", "prompt", "cached", "accepted", "drafted", "wait"]) {
        const figure = value.figures?.[key];
        if (Number.isFinite(figure)) figures[key] = figure;
    }
    return {id: text(value.id), role: "assistant", content: text(value.content), reasoning: text(value.reasoning),
            drafted: numbers(value.drafted), reasoningDrafted: numbers(value.reasoningDrafted), figures,
            note: text(value.note), error: text(value.error), ...(value.more === true ? {more: true} : {})};
}

export function fromFile(json) {
    const file = JSON.parse(json);
    if (!Array.isArray(file?.conversations)) throw new Error("The file holds no conversations.");
    return file.conversations.filter((c) => text(c?.id) && Array.isArray(c.messages)).map((c) => ({
        id: text(c.id), title: text(c.title), named: c.named === true, created: whole(c.created),
        changed: whole(c.changed), messages: messagesOf(c.messages, 0),
    }));
}
