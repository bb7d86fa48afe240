#!/usr/bin/python3
"""Tests the chat page in a headless Chromium: its behaviour, the data that it stores, and the addresses that it asks
for.

usage: tests/page/check.py FORERUN [NAME ...]

In: a build of the command; the names of checks, by default all. Out: a line for each check; exit status 1 if one
failed. Answers are compared with those of the server to the same question without the page.
"""
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import time
import traceback
import urllib.request

from selenium.webdriver.common.keys import Keys

import markdown
from browser import Browser

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
DEMO = ["-m", str(TOP / "tools/demo/target"), "-md", str(TOP / "tools/demo/assistant"), "-np", "2", "--slots"]
SEES = ["-m", str(TOP / "tests/data/glm-ocr"), "-np", "2"]
PICTURE = TOP / "tests/data/images/png-2-8.png"
FIXED = {"temperature": "0", "maxTokens": "40"}
SENT = {"temperature": 0, "max_tokens": 40}


@contextlib.contextmanager
def serving(options):
    server = subprocess.Popen([FORERUN, "serve", "--port", "0", *options], stderr=subprocess.PIPE, text=True)
    try:
        url = re.search(r"listening on (\S+)", server.stderr.readline()).group(1)
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(url + "/health").close()
                break
            assert time.monotonic() < end, "the server did not become ready"
            time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait()
        server.stderr.close()


@contextlib.contextmanager
def page(options, settings=None, quiet=True):
    """Runs a server and a browser on it. At the end, no other server may have been asked, and the console must be
    empty."""
    with serving(options) as url:
        browser = Browser(url)
        try:
            if settings:
                browser.run("localStorage.setItem('forerun.settings', arguments[0])", json.dumps(settings))
                browser.reload()
            browser.until(lambda: quiet is False or "answers" in browser.one("#empty-text").text, "a page")
            yield browser
            asked, said = browser.listen()
            others = [one for one in asked if not one.startswith((url + "/", "data:", f"blob:{url}/"))]
            assert not others, f"asked others: {others}"
            assert len(asked) > 10, "nothing was heard of what the page asks for"
            assert not quiet or not said, f"in the console: {said}"
        finally:
            browser.close()


def answer_to(url, messages, **more):
    body = json.dumps({"messages": messages, **SENT, **more}).encode()
    with urllib.request.urlopen(urllib.request.Request(url + "/v1/chat/completions", body)) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def last(browser):
    return browser.kept()[0]["messages"][-1]


# ------------------------------------------------------------------------------------------------------------- checks

def chat():
    with page(DEMO, FIXED) as b:
        b.say("The river in winter")
        first = answer_to(b.url, [user("The river in winter")])
        assert last(b)["content"] == first, (last(b), first)
        assert b.one(".bubble").text == "The river in winter"
        figures = b.one(".assistant .figures").text
        assert "tokens/s" in figures and "a call" in figures and "40 tokens" in figures, figures
        b.press("two", Keys.SHIFT, Keys.ENTER, Keys.NULL, "lines")
        assert b.one("#input").get_attribute("value") == "two\nlines"
        b.press(Keys.ENTER)
        b.ended()
        second = answer_to(b.url, [user("The river in winter"), assistant(first), user("two\nlines")])
        assert last(b)["content"] == second, (last(b), second)
        assert b.one("#input").get_attribute("value") == ""


def drafts():
    # As many drafts as pay may be one on a busy machine, so their number is fixed.
    with page([*DEMO, "--draft-max", "3", "--draft-p-min", "0"], FIXED) as b:
        b.say("def f(x):")
        message = last(b)
        marked = "".join(message["content"][a:z] for a, z in zip(message["drafted"][::2], message["drafted"][1::2]))
        assert 0 < message["figures"]["accepted"] <= message["figures"]["drafted"], message["figures"]
        assert 0 < len(marked) < len(message["content"]), marked
        spans = "".join(one.get_attribute("textContent") for one in b.all(".assistant .prose .drafted"))
        assert len(spans) > 0 and all(c in marked for c in spans), (spans, marked)
        colour = "return getComputedStyle(document.querySelector('.drafted')).color"
        plain = b.run(colour)
        b.alt("d")
        assert b.run(colour) != plain and b.one("#drafts").get_attribute("aria-pressed") == "true"
        b.one("#drafts").click()
        assert b.run(colour) == plain
        settings = {**FIXED, "drafting": False}
        b.run("localStorage.setItem('forerun.settings', arguments[0])", json.dumps(settings))
        b.reload()
        b.until(lambda: b.all(".assistant"), "the conversation")
        b.alt("r")
        b.until(lambda: not last(b)["drafted"], "another answer")
        b.ended()
        undrafted = last(b)
        assert undrafted["content"] == message["content"] and undrafted["figures"]["drafted"] == 0


def stop():
    with page(DEMO, {"temperature": "0"}) as b:
        b.press("Tell me everything", Keys.ENTER)
        b.until(lambda: b.all(".assistant .figures span"), "the beginning of an answer")
        assert b.one("#send").get_attribute("aria-label") == "Stop"
        b.press(Keys.ESCAPE)
        b.ended()
        message = last(b)
        assert message["note"] == "Stopped." and message["content"] and not message["error"], message
        slots = lambda: json.load(urllib.request.urlopen(b.url + "/slots"))
        b.until(lambda: not any(one["is_processing"] for one in slots()), "the server's end of it")
        whole = answer_to(b.url, [user("Tell me everything")], max_tokens=message["figures"]["tokens"] + 8)
        assert whole.startswith(message["content"]), "what is there is no beginning of the answer"
        b.press("Once more", Keys.ENTER)
        b.until(lambda: len(b.all(".assistant")) == 2 and b.all("[aria-busy=true] .figures span"), "another answer")
        b.one("#send").click()
        b.ended()
        assert last(b)["note"] == "Stopped."


def edit():
    with page(DEMO, FIXED) as b:
        b.say("one")
        b.say("two")
        assert len(b.all(".message")) == 4
        b.run("document.querySelector('.user [aria-label=\"Edit message\"]').click()")
        area = b.one(".user .edit textarea")
        area.send_keys(Keys.END, " and more", Keys.ENTER)
        b.until(lambda: len(b.all(".message")) == 2, "a shorter conversation")
        b.ended()
        assert last(b)["content"] == answer_to(b.url, [user("one and more")])
        b.press(Keys.ARROW_UP)
        b.one(".user .edit textarea").send_keys(" dropped", Keys.ESCAPE)
        assert b.one(".bubble").text == "one and more"
        b.run("document.querySelector('.assistant [aria-label=\"Edit answer\"]').click()")
        area = b.one(".assistant .edit textarea")
        area.clear()
        area.send_keys("Mine.")
        b.one(".assistant .edit [type=submit]").click()
        b.until(lambda: last(b)["content"] == "Mine.", "an answer of one's own")
        b.say("next")
        expected = answer_to(b.url, [user("one and more"), assistant("Mine."), user("next")])
        assert last(b)["content"] == expected


def again():
    with page(DEMO, {"maxTokens": "40", "temperature": "1.5"}) as b:
        b.say("Rain?")
        texts = {last(b)["content"]}
        for _ in range(3):
            b.one(".assistant [aria-label^='Another']").click()
            b.until(lambda: b.all("[aria-busy=true]") or last(b)["content"] not in texts, "another answer")
            b.ended()
            texts.add(last(b)["content"])
        assert len(texts) > 1, texts
        assert len(b.kept()) == 1 and len(b.kept()[0]["messages"]) == 2
        b.one("#open-settings").click()
        b.one("#set-seed").send_keys("7")
        b.one("#set-temperature").clear()
        b.one("#set-temperature").send_keys("hot")
        b.one("#set-save").click()
        assert b.one("#set-error").is_displayed() and b.one("#settings").get_attribute("open")
        b.one("#set-temperature").clear()
        b.one("#set-temperature").send_keys("0.9", Keys.ENTER)
        assert not b.one("#settings").get_attribute("open")
        b.alt("r")
        time.sleep(0.1)
        b.ended()
        assert last(b)["content"] == answer_to(b.url, [user("Rain?")], seed=7, temperature=0.9)


def keeps():
    with page(DEMO, FIXED) as b:
        b.say("The first one")
        b.alt("n")
        b.say("The second one")
        before = b.kept()
        shown = b.one("#messages").text
        assert [c["title"] for c in before] == ["The second one", "The first one"]
        b.reload()
        b.until(lambda: len(b.all("#conversations li")) == 2, "conversations")
        assert b.one("#messages").text == shown and b.kept() == before
        b.alt(Keys.ARROW_DOWN)
        assert b.one(".bubble").text == "The first one"
        b.one("li[data-current] [aria-label^=Rename]").click()
        b.one(".rename").send_keys(Keys.CONTROL, "a", Keys.NULL, "Another name", Keys.ENTER)
        b.until(lambda: any(c["title"] == "Another name" for c in b.kept()), "another name")
        b.one("#open-settings").click()
        b.one("#export").click()
        folder = pathlib.Path(b.downloads)
        b.until(lambda: list(folder.glob("*.json")), "an exported file")
        time.sleep(0.3)
        exported = next(folder.glob("*.json"))
        kept = b.kept()
        assert json.loads(exported.read_text())["conversations"] == kept
        b.one("#delete-all").click()
        b.one("#confirm-yes").click()
        b.until(lambda: not b.kept() and not b.all("#conversations li"), "no conversations")
        b.one("#open-settings").click()
        b.one("#import-file").send_keys(str(exported))
        b.until(lambda: len(b.kept()) == 2, "imported conversations")
        assert b.kept() == kept
        bad = folder / "bad.json"
        bad.write_text('{"conversations": 3}')
        b.one("#open-settings").click()
        b.one("#import-file").send_keys(str(bad))
        b.until(lambda: "no conversations" in b.one("#set-error").text, "a refusal")
        b.press(Keys.ESCAPE, where="#set-system")
        b.one("#conversations .open-chat").click()
        b.one("li[data-current] [aria-label^=Delete]").click()
        b.one("#confirm-yes").click()
        b.until(lambda: len(b.kept()) == 1, "one conversation less")
        b.listen()


def pictures():
    with page(SEES, {**FIXED, "maxTokens": "8"}) as b:
        b.one("#file").send_keys(str(PICTURE))
        b.until(lambda: b.all(".picture img"), "a picture")
        b.say("Text Recognition:")
        url = last_picture = b.kept()[0]["messages"][0]["pictures"][0]
        parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "Text Recognition:"}]
        expected = answer_to(b.url, [{"role": "user", "content": parts}], max_tokens=8)
        assert last(b)["content"] == expected and not last(b)["error"], (last(b), expected)
        assert b.run("return document.querySelector('.shown-pictures img').naturalWidth") > 0
        assert last_picture.startswith("data:image/png;base64,")
        b.reload()
        b.until(lambda: b.all(".shown-pictures img"), "the picture")


# Replaces the next stream of the server: chunks of these deltas, cut within a character.
STREAM = """
const fetched = window.fetch, chunks = arguments[0].map((chunk) => `data: ${JSON.stringify(chunk)}\\n\\n`).join("");
window.fetch = async (path, options) => {
    if (!String(path).endsWith("v1/chat/completions")) return fetched(path, options);
    const bytes = new TextEncoder().encode(chunks);
    return new Response(new ReadableStream({async start(controller) {
        for (let at = 0; at < bytes.length; at += 7) {
            controller.enqueue(bytes.slice(at, at + 7));
            await new Promise((resolve) => setTimeout(resolve, 1));
        }
        controller.close();
    }}), {headers: {"Content-Type": "text/event-stream"}});
};
"""


def thinks():
    delta = lambda **members: {"choices": [{"index": 0, "delta": members, "finish_reason": None}]}
    with page(DEMO) as b:
        b.run(STREAM, [delta(role="assistant", content=None), delta(reasoning_content="Hm, *so*: "),
                       {**delta(reasoning_content="é日"), "drafted": True}, delta(content="Yes"),
                       {**delta(content=" 🙂!"), "drafted": True}, delta()])
        b.say("Is it?")
        message = last(b)
        assert (message["reasoning"], message["content"]) == ("Hm, *so*: é日", "Yes 🙂!"), message
        assert b.one(".drafted").get_attribute("textContent") == "é日"
        assert not b.one(".thinking").get_attribute("open") and not b.seen(".thinking em")
        b.one(".thinking summary").click()
        assert b.seen(".thinking em") and b.one(".thinking summary").text == "Thoughts"
        b.reload()
        b.until(lambda: b.all(".thinking"), "thoughts that were kept")
        assert not b.seen(".thinking em")
        b.run(STREAM, [delta(content="Half"), {"error": {"code": 500, "message": "it <b>broke</b>"}}])
        b.say("And now?")
        assert b.all(".message .error")[-1].text == "it <b>broke</b>" and last(b)["content"] == "Half"


def keys():
    with page([*DEMO, "--api-key", "open-sesame"], FIXED, quiet=False) as b:
        b.until(lambda: b.one("#key").get_attribute("open"), "a question for a key")
        b.press("wrong", Keys.ENTER, where="#key-input")
        b.until(lambda: "none of the server" in b.one("#key-text").text, "another question")
        b.until(lambda: b.one("#key").get_attribute("open"), "a question for a key")
        b.press("open-sesame", Keys.ENTER, where="#key-input")
        b.until(lambda: b.one("#model").text == "target", "the model's name")
        assert b.run("return sessionStorage.getItem('forerun.key')") == "open-sesame"
        assert "open-sesame" not in json.dumps(b.run("return {...localStorage}"))
        b.say("Hello")
        assert last(b)["content"] and not last(b)["error"]
        _, said = b.listen()
        strange = [one for one in said if "401" not in one["message"]]
        assert said and not strange, strange


def rounds():
    with page(DEMO, {"temperature": "0", "maxTokens": "600"}) as b:
        b.alt("l")
        assert b.one("#rounds").is_displayed() and len(b.all("#rounds-slots tbody tr")) in (0, 2)
        b.press("A long answer, please", Keys.ENTER)
        b.until(lambda: "text" in b.one("#rounds-slots").text, "a slot with a text")
        b.until(lambda: "rounds a second" in b.one("#rounds-text").text, "a pace")
        drawn = "const c = document.getElementById('rounds-chart'); return c.getContext('2d')" \
                ".getImageData(0, 0, c.width, c.height).data.some((v) => v > 0)"
        assert b.run(drawn)
        b.one("#close-rounds").click()
        assert not b.one("#rounds").is_displayed()
        b.press(Keys.ESCAPE)
        b.ended()
    with page(DEMO[:-1], FIXED) as b:
        b.alt("l")
        assert "--slots" in b.one("#rounds-text").text


def markup():
    with page(DEMO) as b:
        for source, expected in markdown.CASES:
            got = b.module(markdown.OUTLINE + """
                const {renderMarkdown} = await import('/page/markdown.js');
                const whole = document.createElement("div"), grown = document.createElement("div");
                renderMarkdown(whole, values[0], []);
                for (let n = 0; n <= values[0].length; n++) renderMarkdown(grown, values[0].slice(0, n), []);
                const marked = document.createElement("div");
                renderMarkdown(marked, values[0], [1, 3, 4, values[0].length]);
                const texts = [whole, grown, marked].map((e) => [...e.childNodes].map(outline).join(""));
                return texts.every((text) => text === texts[0]) ? texts[0] : texts.join(" OR ");""", source)
            assert got == expected, f"{source!r}: {got!r}, not {expected!r}"
        for source in markdown.HOSTILE:
            milliseconds = b.module("""
                const {renderMarkdown} = await import('/page/markdown.js');
                const before = performance.now();
                renderMarkdown(document.createElement("div"), values[0], []);
                return performance.now() - before;""", source)
            assert isinstance(milliseconds, (int, float)) and milliseconds < 3000, (source[:20], milliseconds)


RICH = ("Euler: $e^{i\\pi}=-1$ and $\\notamacro$.\n\n$$\n\\int_0^1 x\\,dx\n$$\n\n"
        "```python\ndef f(x):\n    return \"<b>\"\n```\n")


def rich():
    """KaTeX must show formulas, and highlight.js colours. Both come from this server, under its policy."""
    delta = lambda **members: {"choices": [{"index": 0, "delta": members, "finish_reason": None}]}
    with page(DEMO) as b:
        b.run(STREAM, [delta(content=RICH[:30]), {**delta(content=RICH[30:]), "drafted": True}, delta()])
        b.say("Show it")
        b.until(lambda: len(b.all(".formula .katex")) == 2, "two formulas")
        assert b.one(".formula.display .katex-display")
        assert b.all(".formula")[1].text == "\\notamacro"
        b.until(lambda: b.all(".code .hljs-keyword"), "coloured code")
        assert b.one(".code code").get_attribute("textContent") == 'def f(x):\n    return "<b>"'
        assert b.one(".code .hljs-string").get_attribute("textContent") == '"<b>"'
        b.until(lambda: b.run("return document.fonts.check('16px KaTeX_Math')"), "KaTeX's letters")
        b.run("window.fetch = undefined")


def branches():
    with page(DEMO, FIXED) as b:
        b.say("one")
        first = last(b)["content"]
        b.say("two")
        second = last(b)["content"]
        b.run("document.querySelector('.user [aria-label=\"Edit message\"]').click()")
        b.one(".user .edit textarea").send_keys(" and more", Keys.ENTER)
        b.until(lambda: len(b.all(".message")) == 2 and last(b)["figures"], "another branch")
        b.ended()
        assert "2 of 2" in b.one(".user .branches").text
        b.one(".user [aria-label='The version before']").click()
        b.until(lambda: len(b.all(".message")) == 4, "the branch before")
        messages = b.kept()[0]["messages"]
        assert [m["content"] for m in messages] == ["one", first, "two", second], messages
        assert messages[0]["branch"] == 0 and len(messages[0]["branches"]) == 1
        b.alt("r")
        b.until(lambda: b.all(".assistant .branches"), "another answer")
        b.ended()
        b.reload()
        b.until(lambda: len(b.all(".message")) == 4, "the conversation")
        assert "1 of 2" in b.one(".user .branches").text
        assert b.all(".assistant .branches")[-1].text.strip() == "2 of 2"
        b.one(".user [aria-label='The version after']").click()
        b.until(lambda: b.one(".bubble").text == "one and more", "the branch after")


def files():
    with page(DEMO, FIXED) as b:
        path = pathlib.Path(b.downloads) / "notes.txt"
        path.write_text("first\n```\nsecond")
        b.one("#file").send_keys(str(path))
        b.until(lambda: b.all("#files .file"), "a file")
        b.say("What is it?")
        sent = "notes.txt:\n````\nfirst\n```\nsecond\n````\n\nWhat is it?"
        assert last(b)["content"] == answer_to(b.url, [user(sent)])
        assert b.one(".shown-files .file-name").text == "notes.txt" and b.one(".bubble").text == "What is it?"
        (pathlib.Path(b.downloads) / "bytes.bin").write_bytes(b"\xff\x00\xfe")
        b.one("#file").send_keys(str(pathlib.Path(b.downloads) / "bytes.bin"))
        b.until(lambda: "no text" in b.one("#notice").text, "a refusal")
        b.run("""const data = new DataTransfer();
                 data.setData("text/plain", "long line\\n".repeat(500));
                 document.getElementById("input").dispatchEvent(new ClipboardEvent("paste", {clipboardData: data,
                                                                                        cancelable: true}));""")
        assert b.one("#files .file-name").text == "pasted.txt"
        b.reload()
        b.until(lambda: b.all(".shown-files .file"), "the file that was kept")


def goes_on():
    with page(DEMO, {"temperature": "0", "maxTokens": "12"}) as b:
        b.say("The river in winter")
        begun = last(b)["content"]
        assert last(b)["more"] and b.seen(".assistant [aria-label^='Go on']")
        b.one(".assistant [aria-label^='Go on']").click()
        b.until(lambda: len(last(b)["content"]) > len(begun), "more of it")
        b.ended()
        rest = answer_to(b.url, [user("The river in winter"), assistant(begun)], max_tokens=12,
                         continue_final_message=True)
        assert last(b)["content"] == begun + rest, (last(b)["content"], begun, rest)
        assert len(b.all(".message")) == 2


def finds():
    with page(DEMO, {**FIXED, "topK": "3", "minP": "0.1", "samplers": "top_k, temperature"}) as b:
        b.say("A heron stood there")
        used = b.one("#context-text").text
        figures = last(b)["figures"]
        count = figures["prompt"] + figures["cached"] + figures["tokens"]
        assert used.startswith(f"{count} of ") and b.one("#context-meter").get_attribute("value") == str(count), used
        b.alt("n")
        b.say("Nothing of that kind")
        b.one("#search").send_keys("heron")
        assert [one.text for one in b.all("#conversations .open-chat")] == ["A heron stood there"]
        b.one("#search").send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.BACKSPACE)
        assert len(b.all("#conversations .open-chat")) == 2
        b.one("#open-settings").click()
        assert b.one("#set-more").get_attribute("open") and b.one("#set-top-k").get_attribute("value") == "3"
        b.one("#set-thinking").send_keys("off")
        b.one("#set-min-p").clear()
        b.one("#set-min-p").send_keys("2", Keys.ENTER)
        assert "Min p" in b.one("#set-error").text
        b.one("#set-min-p").clear()
        b.one("#set-min-p").send_keys("0.2", Keys.ENTER)
        kept = json.loads(b.run("return localStorage.getItem('forerun.settings')"))
        assert (kept["minP"], kept["thinking"], kept["samplers"]) == ("0.2", "off", "top_k, temperature"), kept
        b.driver.get(b.url + "/?q=What%20is%20rain%3F")
        b.until(lambda: b.all(".assistant .figures span"), "an answer to what the address asks")
        b.ended()
        assert b.one(".bubble").text == "What is rain?" and "?q" not in b.run("return location.href")


CONTRAST = """
const light = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const parse = (colour) => (colour.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
const under = (element) => {
    let layers = [];
    for (let e = element; e; e = e.parentElement) {
        const [r, g, b, a = 1] = parse(getComputedStyle(e).backgroundColor);
        layers.push([r, g, b, a]);
        if (a === 1) break;
    }
    return layers.reverse().reduce((below, [r, g, b, a]) => [r, g, b].map((c, i) => c * a + below[i] * (1 - a)),
                                   [255, 255, 255]);
};
return [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility({visibilityProperty: true}) &&
    [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).map((e) => {
    const a = luminance(parse(getComputedStyle(e).color)), b = luminance(under(e));
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML.slice(0, 120)];
}).filter(([ratio]) => ratio < 4.5);
"""

NAMELESS = """
return [...document.querySelectorAll("button, input, textarea, select, dialog, nav, aside, a")].filter((e) =>
    !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.getAttribute("aria-hidden") ||
      e.labels?.length || e.textContent.trim())).map((e) => e.outerHTML.slice(0, 120));
"""


def reach():
    """The page must have names for screen readers, enough contrast in both colour schemes, work at any width, and by
    the keyboard alone."""
    with page(DEMO, {**FIXED, "showDrafts": True, "showRounds": True}) as b:
        b.say("def f(x):")
        assert not b.run(NAMELESS), b.run(NAMELESS)
        assert b.one("#status").get_attribute("aria-live") == "polite"
        assert b.run("return document.getElementById('status').textContent").startswith("Answer: ")
        for width in (360, 800, 1400):
            b.size(width, 800)
            for dark in (False, True):
                b.shade(dark)
                time.sleep(0.1)
                assert b.run("return document.documentElement.scrollWidth <= innerWidth"), width
                poor = b.run(CONTRAST)
                assert not poor, (width, dark, poor)
        b.shade(False)
        light = b.run("return getComputedStyle(document.body).backgroundColor")
        b.one("#close-rounds").click()
        b.one("#theme").click()
        b.one("#theme").click()
        assert b.run("return getComputedStyle(document.body).backgroundColor") != light, "dark by the button"
        b.alt("k")
        assert b.one("#shortcuts").get_attribute("open")
        b.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        assert not b.one("#shortcuts").get_attribute("open")
        b.size(360, 740)
        b.one("#menu").click()
        assert b.one("#menu").get_attribute("aria-expanded") == "true"
        b.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        assert b.one("#menu").get_attribute("aria-expanded") == "false"


CHECKS = [chat, drafts, stop, edit, again, branches, keeps, pictures, files, thinks, goes_on, finds, keys, rounds,
          markup, rich, reach]


def main():
    failed = 0
    for check in CHECKS:
        if NAMES and check.__name__ not in NAMES:
            continue
        start = time.monotonic()
        try:
            check()
            print(f"ok    {check.__name__:10} {time.monotonic() - start:5.1f} s", flush=True)
        except Exception:  # whatever it is, only this check has failed
            failed += 1
            print(f"FAIL  {check.__name__}\n{traceback.format_exc()}", flush=True)
    return failed > 0


FORERUN, NAMES = sys.argv[1], sys.argv[2:]
if __name__ == "__main__":
    sys.exit(main())
