"""Markdown texts, and the elements that the page makes of them. The rules are those of CommonMark and GitHub, with
three differences: the end of a line is a break, a picture becomes a link, and HTML is text."""

# A source, and the elements as <name> with their text. A link also has its target.
CASES = [
    ("plain", "<p>plain</p>"),
    ("a\nb", "<p>a<br></br>b</p>"),
    ("a\n\nb", "<p>a</p><p>b</p>"),
    ("# One\n## Two ##", "<h3>One</h3><h4>Two</h4>"),
    ("#none", "<p>#none</p>"),
    ("*a* **b** ***c*** ~~d~~ _e_ __f__", "<p><em>a</em> <strong>b</strong> <strong><em>c</em></strong> "
     "<del>d</del> <em>e</em> <strong>f</strong></p>"),
    ("**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"),
    ("snake_case_name 2 * 3 * 4", "<p>snake_case_name 2 * 3 * 4</p>"),
    ("**open", "<p>**open</p>"),
    ("\\*a\\*", "<p>*a*</p>"),
    ("`a*b*` ``c`d`` `open", "<p><code>a*b*</code> <code>c`d</code> `open</p>"),
    ("```py\na = 1\n\nb\n```\nend", "<code-block py>a = 1\n\nb</code-block><p>end</p>"),
    ("```\nnot closed", "<code-block text>not closed</code-block>"),
    ("~~~\n```\n~~~", "<code-block text>```</code-block>"),
    ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
    ("- a\n  - b\n    - c\n- d", "<ul><li>a<ul><li>b<ul><li>c</li></ul></li></ul></li><li>d</li></ul>"),
    ("1. a\n2. b\n   more", "<ol><li>a</li><li>b<br></br>more</li></ol>"),
    ("3) a", "<ol 3><li>a</li></ol>"),
    ("- a\n\n- b", "<ul><li><p>a</p></li><li><p>b</p></li></ul>"),
    ("1. a\n   ```\n   x\n     y\n   ```\n2. b",
     "<ol><li>a<code-block text>x\n  y</code-block></li><li>b</li></ol>"),
    ("text\n- a", "<p>text</p><ul><li>a</li></ul>"),
    ("> a\n> b\n>> c", "<blockquote><p>a<br></br>b</p><blockquote><p>c</p></blockquote></blockquote>"),
    ("a\n\n---\n\nb", "<p>a</p><hr></hr><p>b</p>"),
    ("| a | b |\n|---|--:|\n| 1 | `x|y` |\n| 2 |", "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td>"
     "<td><code>x|y</code></td></tr><tr><td>2</td><td></td></tr></table>"),
    ("a | b", "<p>a | b</p>"),
    ("[a](https://b.example/c)", "<p><a https://b.example/c>a</a></p>"),
    ("[a **b**](https://b.example/)", "<p><a https://b.example/>a <strong>b</strong></a></p>"),
    ("see https://b.example/c.", "<p>see <a https://b.example/c>https://b.example/c</a>.</p>"),
    ("<https://b.example/>", "<p><a https://b.example/>https://b.example/</a></p>"),
    ("![a](https://b.example/p.png)", "<p><a https://b.example/p.png>a</a></p>"),
    ("[a](javascript:alert(1))", "<p>[a](javascript:alert(1))</p>"),
    ("[a](data:text/html,x) [b](//c.example)", "<p>[a](data:text/html,x) [b](//c.example)</p>"),
    ("<script>alert(1)</script> <img src=x onerror=alert(1)>",
     "<p><script>alert(1)</script> <img src=x onerror=alert(1)></p>"),
    ("&lt; &amp;", "<p>&lt; &amp;</p>"),
    ("a **b\n\nc** d", "<p>a **b</p><p>c** d</p>"),
    ("- [ ] a\n- [x] b", "<ul><li><input ></input>a</li><li><input x></input>b</li></ul>"),
    ("so $x^2$ and \\(y_1\\) hold", "<p>so <tex>x^2</tex> and <tex>y_1</tex> hold</p>"),
    ("$$\na\n+b\n$$\nc", "<p><tex>a\n+b</tex></p><p>c</p>"),
    ("\\[ a \\]", "<p><tex>a</tex></p>"),
    ("it costs $5, or $6 to $7", "<p>it costs $5, or $6 to $7</p>"),
    ("$ a$ and $b $ and $c", "<p>$ a$ and $b $ and $c</p>"),
    ("`$x$` \\$x\\$", "<p><code>$x$</code> $x$</p>"),
    ("$$ not closed\n\nb", "<p>$$ not closed</p><p>b</p>"),
]

# Texts that might take long, or nest deeply.
HOSTILE = [
    "*" * 30000, "*a " * 20000, "**a** " * 20000, "_a" * 20000, "`" * 30000, "`a " * 20000, "``a` " * 8000,
    "[" * 30000, "[a](" * 8000, "[a](b " * 8000, "![](" * 8000, "<" * 30000, "<https://" * 3000, "https://" * 4000,
    "> " * 5000 + "a", "- " * 5000 + "a", "\n".join(" " * i + "- a" for i in range(600)),
    "|" * 20000 + "\n" + "|-" * 9999,
    "a|b\n-|-\n" + "c|d\n" * 3000, "~~~\n" * 3000, "\\" * 30000, "# " * 10000, "1. a\n" * 3000, "***a" * 6000,
    "*a **b " * 6000, "$" * 30000, "$a " * 20000, "$$\n" * 3000, "\\[\n" * 3000, "\\(a" * 8000,
]

# Writes elements in the form of the texts above.
OUTLINE = """
const outline = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    const inner = (of) => [...of.childNodes].map(outline).join("");
    const name = node.tagName.toLowerCase();
    if (node.matches("div.code")) {
        const language = node.querySelector(".code-head span").textContent;
        return `<code-block ${language}>${node.querySelector("code").textContent}</code-block>`;
    }
    if (node.matches(".formula")) return `<tex>${node.dataset.tex}</tex>`;
    if (name === "input") return `<input ${node.checked ? "x" : ""}></input>`;
    if (["div", "span", "thead", "tbody"].includes(name)) return inner(node);
    const more = name === "a" ? ` ${node.href}` : name === "ol" && node.start !== 1 ? ` ${node.start}` : "";
    return `<${name}${more}>${inner(node)}</${name}>`;
};
"""
