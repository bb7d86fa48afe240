// Shows one message: a user's bubble, or an answer with its thoughts folded, its text, the reason why it ended,
// buttons, and its figures.
//
// In: a message (store.js) and the actions of its buttons. Out: an element that is updated while the message grows.

import {placeOf} from "./branches.js";
import {copyButton, el, iconButton} from "./dom.js";
import {chip} from "./files.js";
import {renderMarkdown, renderPlain} from "./markdown.js";

const number = (value, digits) => value.toLocaleString("en", {maximumFractionDigits: digits,
                                                                minimumFractionDigits: digits});

/** Gives the figures of an answer as texts: tokens a second after the first token (whose wait is shown separately),
 *  tokens for each forward of the model, and the number of tokens. */
export function figuresOf(figures) {
    if (!figures?.tokens) return [];
    const {tokens, seconds, accepted = 0, drafted = 0} = figures, shown = [];
    if (tokens > 1 && seconds > 0) shown.push(`${number((tokens - 1) / seconds, 1)} tokens/s`);
    shown.push(`${number(tokens / Math.max(1, tokens - accepted), 2)} a call`);
    shown.push(tokens === 1 ? "1 token" : `${number(tokens, 0)} tokens`);
    if (drafted) shown.push(`${number(accepted, 0)} of ${number(drafted, 0)} drafts`);
    return shown;
}

function hintOf(figures) {
    if (!figures?.prompt) return null;
    const wait = figures.wait === undefined ? "" : ` in ${number(figures.wait / 1000, 2)} s`;
    return `Prompt: ${number(figures.prompt, 0)} tokens run${wait}`;
}

export class MessageView {
    /** Makes the element. actions: {edit(message, text), again(message), goOn(message), turn(message, by)}. */
    constructor(message, actions) {
        this.message = message;
        this.actions = actions;
        this.element = el(`li.message.${message.role}`);
        if (message.role === "user") this.buildUser();
        else this.buildAnswer();
    }

    buildUser() {
        const {message} = this;
        const pictures = (message.pictures ?? []).map((url, i) => el("img", {src: url, alt: `Picture ${i + 1}`}));
        const foot = el("div.foot", {}, ...this.branchButtons(), copyButton("Copy message", () => message.content),
                        iconButton("edit", "Edit message", () => this.edit()));
        this.element.replaceChildren(el("span.off-screen", {}, "You: "));
        if (pictures.length) this.element.append(el("div.shown-pictures", {}, ...pictures));
        if (message.files?.length) this.element.append(el("div.shown-files", {}, ...message.files.map((f) => chip(f))));
        if (message.content) this.element.append(el("div.bubble", {}, message.content));
        this.element.append(foot);
    }

    /** Makes buttons for the previous and the next branch, if there are several. */
    branchButtons() {
        const {message} = this, [place, count] = placeOf(message);
        if (count < 2) return [];
        const turn = (name, label, by, there) => {
            const button = iconButton(name, label, () => this.actions.turn(message, by));
            button.disabled = !there;
            return button;
        };
        return [el("span.branches", {}, turn("before", "The version before", -1, place > 1), `${place} of ${count}`,
                   turn("after", "The version after", 1, place < count))];
    }

    buildAnswer() {
        const {message} = this;
        this.thoughts = el("div.prose");
        this.summary = el("summary", {}, "Thinking");
        this.thinking = el("details.thinking", {hidden: true}, this.summary, this.thoughts);
        this.text = el("div.prose");
        this.note = el("p.note", {hidden: true});
        this.error = el("p.error", {hidden: true});
        this.figures = el("span.figures");
        this.goOn = iconButton("on", "Go on with this answer", () => this.actions.goOn(message));
        this.foot = el("div.foot", {hidden: true}, ...this.branchButtons(),
                       copyButton("Copy answer", () => message.content),
                       iconButton("edit", "Edit answer", () => this.edit()),
                       iconButton("again", "Another answer (Alt+R)", () => this.actions.again(message)), this.goOn,
                       this.figures);
        this.element.replaceChildren(el("span.off-screen", {}, "Answer: "), this.thinking, this.text, this.note,
                                     this.error, this.foot);
        this.update(false);
    }

    /** Shows the present state of the message; streaming: it is still growing. */
    update(streaming) {
        const {message} = this, thinks = Boolean(message.reasoning);
        this.element.setAttribute("aria-busy", streaming ? "true" : "false");
        this.thinking.hidden = !thinks;
        if (thinks) {
            this.summary.textContent = streaming && !message.content ? "Thinking …" : "Thoughts";
            renderPlainOrMarkdown(this.thoughts, message.reasoning, message.reasoningDrafted ?? []);
        }
        renderPlainOrMarkdown(this.text, message.content, message.drafted ?? []);
        this.text.classList.toggle("waiting", streaming && !message.content && !thinks);
        this.note.hidden = !message.note;
        this.note.textContent = message.note ?? "";
        this.error.hidden = !message.error;
        this.error.textContent = message.error ?? "";
        this.foot.hidden = streaming && !message.figures?.tokens;
        this.foot.classList.toggle("streaming", streaming);
        for (const button of this.foot.querySelectorAll("button")) button.hidden = streaming;
        this.goOn.hidden = streaming || !message.more;
        this.figures.replaceChildren(...figuresOf(message.figures).map((text) => el("span", {}, text)));
        this.figures.title = hintOf(message.figures) ?? "";
    }

    edit() {
        if (this.element.querySelector(".edit")) return;
        const {message} = this, user = message.role === "user";
        const area = el("textarea", {"aria-label": user ? "Your message" : "The answer"});
        area.value = message.content;
        const close = (changed) => {
            const text = area.value;
            if (user) this.buildUser();
            else this.buildAnswer();
            if (changed) this.actions.edit(message, text);
            else this.element.querySelector(".foot [aria-label^=Edit]")?.focus();
        };
        const form = el("form.edit", {
            submit: (event) => {
                event.preventDefault();
                close(true);
            },
            keydown: (event) => {
                if (event.key === "Escape") {
                    event.stopPropagation();
                    close(false);
                } else if (event.key === "Enter" && user && !event.shiftKey && !event.isComposing) {
                    event.preventDefault();
                    close(true);
                }
            },
        }, area, el("div.buttons", {}, el("button.quiet", {type: "button", click: () => close(false)}, "Cancel"),
                    el("button.primary", {type: "submit"}, user ? "Send" : "Save")));
        this.element.replaceChildren(form);
        area.focus();
        area.setSelectionRange(area.value.length, area.value.length);
    }
}

const LONGEST = 200000; // a text of more characters is shown without Markdown

function renderPlainOrMarkdown(container, source, drafted) {
    if (source.length > LONGEST) renderPlain(container, source, drafted);
    else renderMarkdown(container, source, drafted);
}
