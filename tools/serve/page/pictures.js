// Pictures that go with the next message: chosen, pasted or dropped.
//
// In: files. Out: data URLs. PNG, JPEG, WebP and GIF files are unchanged; other pictures that the browser can show
// become PNG.

import {byId, el, iconButton} from "./dom.js";

const MOST = 8;
let waiting = [];

const read = (blob) => new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
});

async function asPng(file) {
    const bitmap = await createImageBitmap(file);
    const canvas = el("canvas", {width: bitmap.width, height: bitmap.height});
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function show() {
    const shown = waiting.map((url, i) => el("div.picture", {}, el("img", {src: url, alt: `Picture ${i + 1}`}),
        iconButton("cross", `Remove picture ${i + 1}`, () => setPictures(waiting.filter((_, k) => k !== i)))));
    byId("pictures").replaceChildren(...shown);
    byId("pictures").hidden = waiting.length === 0;
    byId("input").dispatchEvent(new Event("input"));
}

export const pictures = () => waiting;

export function setPictures(urls) {
    waiting = urls;
    show();
}

/** Adds pictures; gives the reason why one of them can't be added, or "". */
export async function addPictures(files) {
    for (const file of files) {
        if (waiting.length === MOST) return `A message takes ${MOST} pictures.`;
        try {
            const known = ["image/png", "image/jpeg", "image/webp", "image/gif"].includes(file.type);
            waiting = [...waiting, await read(known ? file : await asPng(file))];
        } catch {
            return `${file.name} is no picture that this browser reads.`;
        } finally {
            show();
        }
    }
    return "";
}
