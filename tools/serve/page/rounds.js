// Shows the rounds while they are run: the number of rows in each forward of the model, the slots to which the rows
// belong, and how many ids each slot got from its rows.
//
// In: the server's /rounds, which is asked for while the view is open and the page is visible. Out: a chart of the
// last rounds and a table of slots.

import {roundsAfter} from "./api.js";
import {byId, el} from "./dom.js";

const KEPT = 128, COLOURS = 8, GAP = 1, COLUMN = 4;
const FAST = 250, SLOW = 1000; // milliseconds between questions: FAST while there are new rounds, otherwise SLOW

let rounds = [], slots = 0, total = 0, timer = null, open = false, model = "", offered = true, stamps = [];

const colourOf = (slot) => `var(--slot-${slot % COLOURS})`;
const isPrompt = ([, , , prompt]) => prompt;

/** Sorts the parts of a round: those of texts come first, so that prompts, which are long, are on top. */
function partsOf(round) {
    return [...round.rows].sort((a, b) => isPrompt(a) - isPrompt(b));
}

/** Gives the number of rows that fill the chart's height. Longer prompts are cut. */
function scaleOf(shown) {
    const textRows = (round) => round.rows.filter((part) => !isPrompt(part)).reduce((n, [, rows]) => n + rows, 0);
    const sums = shown.map(textRows);
    return Math.max(8, ...sums) * 1.25;
}

function colours() {
    const probe = el("span");
    document.body.append(probe);
    const all = Array.from({length: COLOURS}, (_, i) => {
        probe.style.color = colourOf(i);
        return getComputedStyle(probe).color;
    });
    probe.remove();
    return all;
}

function draw() {
    const canvas = byId("rounds-chart"), ratio = devicePixelRatio || 1, context = canvas.getContext("2d");
    const width = canvas.clientWidth, height = canvas.clientHeight, palette = colours();
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    context.scale(ratio, ratio);
    const count = Math.floor(width / (COLUMN + GAP)), shown = rounds.slice(-count), unit = height / scaleOf(shown);
    shown.forEach((round, i) => {
        const x = width - (shown.length - i) * (COLUMN + GAP);
        let y = height;
        for (const part of partsOf(round)) {
            const [slot, rows, ids] = part, tall = Math.min(rows * unit, y), colour = palette[slot % COLOURS];
            context.fillStyle = context.strokeStyle = colour;
            if (isPrompt(part)) {
                context.lineWidth = 1;
                context.strokeRect(x + 0.5, y - tall + 0.5, COLUMN - 1, Math.max(tall - 1, 0));
            } else {
                const kept = Math.min(ids * unit, tall);
                context.fillRect(x, y - kept + 0.5, COLUMN, Math.max(kept - 0.5, 0));
                context.globalAlpha = 0.35;
                context.fillRect(x, y - tall + 0.5, COLUMN, Math.max(tall - kept - 0.5, 0));
                context.globalAlpha = 1;
            }
            y -= tall;
        }
    });
}

const mean = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : 0);

/** Gives the rounds a second, by the times when the server was asked. */
function pace() {
    const first = stamps[0], last = stamps.at(-1);
    return stamps.length > 1 && last.at > first.at ? (1000 * (last.total - first.total)) / (last.at - first.at) : 0;
}

function tell() {
    const recent = rounds.slice(-32), text = byId("rounds-text");
    if (!offered) {
        text.textContent = "This server doesn't tell of its rounds: start it with --slots.";
    } else if (recent.length === 0) {
        text.textContent = "Nothing has been run yet.";
    } else {
        const sum = (index) => mean(recent.map((r) => r.rows.reduce((n, part) => n + part[index], 0)));
        const now = pace() > 0 ? `${pace().toFixed(0)} rounds a second` : "Idle; the last rounds";
        text.textContent = `${now}: ${mean(recent.map((r) => r.ms)).toFixed(1)} ms, ${sum(1).toFixed(1)} rows, ` +
            `${sum(2).toFixed(1)} tokens given, on average.`;
    }
    byId("rounds-chart").setAttribute("aria-label", `Rows of the last rounds. ${text.textContent}`);
}

function list(news) {
    const last = rounds.at(-1), mine = new Map(news ? last.rows.map((part) => [part[0], part]) : []);
    const rows = Array.from({length: slots}, (_, slot) => {
        const part = mine.get(slot), swatch = el("span.swatch");
        swatch.style.background = colourOf(slot);
        const now = !part ? "free" : isPrompt(part) ? "prompt" : "text";
        return el("tr", {}, el("td", {}, swatch, String(slot)), el("td", {}, now),
                  el("td", {}, part ? String(part[1]) : "–"), el("td", {}, part ? String(part[2]) : "–"));
    });
    byId("rounds-slots").tBodies[0].replaceChildren(...rows);
    byId("rounds-slots").hidden = slots === 0;
}

/** Asks the server, shows the rounds, and schedules the next question. */
async function look() {
    let news = 0;
    try {
        if (document.visibilityState === "visible" && offered) {
            const answer = await roundsAfter(total, model);
            news = answer.rounds.length;
            if (answer.total < total) rounds = [];
            ({slots, total} = answer);
            rounds = [...rounds, ...answer.rounds].slice(-KEPT);
            stamps = [...stamps, {at: performance.now(), total}].slice(-8);
            tell();
            draw();
            list(news > 0);
        }
    } catch { /* if the server is gone, the next request for text reports it */ }
    if (open) timer = setTimeout(look, news ? FAST : SLOW);
}

/** Opens or closes the view. offers: the server reports its rounds. */
export function showRounds(shown, offers, of) {
    offered = offers;
    if (of !== model) [rounds, total, stamps, model] = [[], 0, [], of];
    open = shown;
    clearTimeout(timer);
    byId("rounds").hidden = !shown;
    byId("live").setAttribute("aria-pressed", shown);
    if (!shown) return;
    tell();
    list(false);
    look();
}
