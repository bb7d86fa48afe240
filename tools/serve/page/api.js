// The server: its model's properties, its rounds, and a chat's answer as a stream.
//
// In: paths of this origin, bodies. Out: JSON, or events one by one; an error has the server's own message. If the
// server requires a key, the key stays in this tab's session storage.

const KEY = "forerun.key";
let keyWanted = null;

/** Sets the function that is called if the server requires a key. `ask` gives a key, or "" if the user enters none. */
export function onKeyWanted(ask) {
    keyWanted = ask;
}

export class ServerError extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

function headers(extra) {
    const key = sessionStorage.getItem(KEY);
    return key ? {...extra, Authorization: `Bearer ${key}`} : {...extra};
}

async function errorOf(response) {
    let message = `${response.status} ${response.statusText}`;
    try {
        message = (await response.json()).error.message;
    } catch { /* no JSON: the status says it all */ }
    return new ServerError(response.status, message);
}

/** Sends a request. If a key is missing, it asks the user for one and sends the request again. */
async function request(path, options = {}) {
    for (let asked = false; ; asked = true) {
        let response;
        try {
            response = await fetch(path, {...options, headers: headers(options.headers), cache: "no-store"});
        } catch (error) {
            if (error.name === "AbortError") throw error;
            throw new ServerError(0, "The server can't be reached.");
        }
        if (response.ok) return response;
        const error = await errorOf(response);
        if (response.status !== 401 || !keyWanted) throw error;
        const key = await keyWanted(asked || sessionStorage.getItem(KEY) !== null);
        if (!key) throw error;
        sessionStorage.setItem(KEY, key);
    }
}

const get = async (path) => (await request(path)).json();
const named = (path, model) => (model ? `${path}${path.includes("?") ? "&" : "?"}model=${encodeURIComponent(model)}`
                                      : path);

/** Asks, without a key, if the server is ready; false while the model is being loaded. */
export async function isReady() {
    try {
        return (await fetch("health", {cache: "no-store"})).ok;
    } catch {
        return false;
    }
}

export const listModels = async () => (await get("v1/models")).data;
export const properties = (model) => get(named("props", model));
export const roundsAfter = (after, model) => get(named(`rounds?after=${after}`, model));

/** Reads the events of a text/event-stream body; each is the JSON after "data: ". */
async function* eventsOf(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
        for (;;) {
            const {value, done} = await reader.read();
            if (done) return;
            const lines = (rest + value).split("\n");
            rest = lines.pop();
            for (const line of lines) {
                if (!line.startsWith("data:")) continue;
                const data = line.slice(5).trim();
                if (data === "[DONE]") return;
                yield JSON.parse(data);
            }
        }
    } finally {
        reader.cancel().catch(() => {});
    }
}

/** Sends a chat and reads its answer chunk by chunk; `signal` stops it. */
export async function* chat(body, signal) {
    const response = await request("v1/chat/completions", {
        method: "POST",
        headers: {"Content-Type": "application/json"},
        body: JSON.stringify({...body, stream: true, return_drafted: true, timings_per_token: true}),
        signal,
    });
    for await (const event of eventsOf(response.body)) {
        if (event.error) throw new ServerError(event.error.code ?? 0, event.error.message ?? "The stream failed.");
        yield event;
    }
}
