"""template_cases.py: tests/data/chat/template_cases.json, small templates and what Python's Jinja2 makes of them.

The environment is set up as transformers sets up its own for chat templates (sandboxed, immutable, trim_blocks,
lstrip_blocks, break and continue, a generation block, tojson without escaping). Each case is a template over the one
context below; where rendering fails, "error" says how. Needs jinja2 3.1.6 and Python 3.11 to 3.13."""

import datetime
import json
import os

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "../../tests/data/chat/template_cases.json")
NOW = 1767323045  # Friday, 2 January 2026, 03:04:05 UTC

CONTEXT = {
    "t": "two words", "e": "", "html": "<b>\"x\" & 'y'</b>", "u": "Äöü ß 日本 😀", "greek": "ΟΔΟΣ ΟΔΟΣ. Σ ΑΣ",
    "lines": "one\n two\r\nthree\rfour\n\n", "sp": " \t x y \n ", "n": 7, "neg": -3, "f": 2.5, "big": 2**53 + 1,
    "yes": True, "no": False, "nil": None, "l": [3, 1, 2], "s": ["b", "A", "c", "a"], "empty": [], "nested": [[1, 2], [3, 4]],
    "d": {"b": 1, "A": 2, "c": {"x": [1, "two", None, True, 1.5]}, "items": "mine"}, "ed": {},
    "people": [{"name": "Bo", "age": 3, "town": "x"}, {"name": "al", "age": 2}, {"name": "Cy", "age": 3, "town": "y"}],
    "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U1"}, {"role": "assistant", "content": "A1"},
                 {"role": "user", "content": [{"type": "text", "text": "U2"}, {"type": "image"}]}],
    "tools": [{"type": "function", "function": {"name": "f", "description": "Does \"it\"\n", "parameters": {
        "type": "object", "properties": {"a": {"type": "string", "enum": ["x", "ü"]}, "b": {"type": "number"}}, "required": ["a"]}}}],
    "tree": [{"v": 1, "k": [{"v": 2, "k": []}, {"v": 3, "k": [{"v": 4, "k": []}]}]}, {"v": 5, "k": []}],
    "ctl": "a\x00b\x1b\x7f\x85\u2028\ud7ff\ue000", "q1": "it's", "q2": "say \"hi\"", "q3": "both ' and \"", "num": "42", "fnum": "42.7", "inf": "inf", "ninf": "-Infinity", "nan": "nan",
}

EXPRESSIONS = r"""
1 + 2 * 3 ** 2
(1 + 2) * 3
7 // 2, -7 // 2, 7 // -2, -7 // -2, 7 % 3, -7 % 3, 7 % -3, -7 % -3
7.5 // 2, -7.5 // 2, 7.5 % -2, -7.5 % 2, 1 / 4, 7 / 7, 6.0 // 3
0.1 + 0.2, 1e16, 1e15, 123456789012345678, 1.5e300 * 1e10, 1e-5, 0.0001, 100.0, 1/3
2 ** 10, 2 ** 0, 2 ** -1, (-2) ** 3, 2.0 ** 3, 2 ** 3 ** 2
-2 ** 2
- n, + n, - - n, -f, -yes
1_000, 0x1F, 0o17, 0b101, 1_0.5, 1e3, 1E-2
9223372036854775807
9223372036854775807 + 1
-9223372036854775807 - 2
4611686018427387904 * 2
3037000500 ** 2
10 ** 18
10 ** 19
1 / 0
1 // 0
1 % 0
1.0 / 0
yes + yes, yes * 3, no - 1
"a" + 1
1 + "a"
"a" + "b" ~ 1 ~ none ~ true ~ 1.0
"a" ~ undefined_thing ~ "b"
"a" + undefined_thing
undefined_thing + 1
"ab" * 3, 3 * "ab", "ab" * 0, "ab" * -1, [1] * 2, 2 * [1, 2]
"ab" * 1.5
[1] + [2, 3], (1,) + (2,)
[1] + (2,)
"-" * 5
1 < 2 < 3, 1 < 3 < 2, 1 == 1.0, 1 != true, "a" < "b", "a" < "B", [1, 2] < [1, 3], (1,) <= (1,)
1 < "a"
none < 1
undefined_thing < 1
none == none, none == false, undefined_thing == undefined_thing, undefined_thing == none
[1, 2] == [1, 2.0], {"a": 1} == {"a": 1}, (1, 2) == [1, 2], d == d
"a" in "abc", "x" in "abc", "" in "abc", "a" not in "abc"
1 in [1, 2], "1" in [1, 2], 1.0 in [1], true in [1]
"b" in d, "z" in d, 1 in d, none in [none]
[1] in d
1 in "abc"
1 in 5
1 in none
"x" in undefined_thing
1 and 2, 0 and 2, 1 or 2, 0 or "" or "x", not 1, not "", not not 1
1 and 2 or 3, not 1 == 2, not (1 and 0)
"yes" if n else "no", "yes" if e else "no", ("x" if no), "x" if no
("x" if no) + "y"
("x" if no).y
1 if 0 else 2 if 0 else 3
(1 if 1 else 2) if 1 else 3
n if n > 5 and n < 10 else -1
n is defined, zzz is defined, zzz is not defined, zzz is undefined, not zzz is defined
n is number, f is number, yes is number, t is number, n is integer, yes is integer, f is integer, f is float, n is float
t is string, n is string, l is string, d is mapping, l is mapping, l is sequence, t is sequence, d is sequence, n is sequence
l is iterable, t is iterable, d is iterable, n is iterable, nil is iterable, zzz is iterable, zzz is sequence
yes is boolean, n is boolean, yes is true, no is false, 1 is true, 0 is false, nil is none, zzz is none
n is odd, n is even, 4 is even, 3 is odd, n is divisibleby 7, n is divisibleby(2), -3 is odd
f is odd
t is odd
n is eq 7, n is equalto 7, n is ne 7, n is gt 5, n is lt 5, n is ge 7, n is le 6, n is lessthan 8, n is greaterthan 8
n is in [7], n is in([1, 2]), "a" is in "abc", "b" is not in "abc"
n is sameas 7, nil is sameas none, l is sameas l, [1] is sameas [1], yes is sameas true, 1 is sameas true
"abc" is lower, "ABC" is upper, "aBc" is lower, "1" is lower, "" is upper, "ß" is lower, "Ä1" is upper
range is callable, t is callable, n is callable, t.upper is callable, zzz is callable
"upper" is filter, "nope" is filter, "odd" is test, "nope" is test, "<b>" | escape is escaped, "b" is escaped
n is foo
n | foo
zzz.x
zzz["x"]
zzz()
zzz | upper, zzz | length, zzz | list, zzz | join, zzz | default("d"), zzz | first
nil.x, nil["x"], n.x, t.x, l.x, d.x, d["x"], l[9], l[-9], t[99], nested[0][5]
nil.x.y
d.x.y
n()
t()
l[0], l[-1], l["0"], t[0], t[-1], u[0], u[4], u[9], u[-1], d["b"], d.b, d.c.x[1], messages[0].role, messages[3].content[0].text
l.0, nested.1.0, messages.0.role
d.items, d["items"]
d.items() | list
l[yes], t[no]
l[1.0]
l["a"]
d[1], d[none]
t[0:3], t[:3], t[4:], t[-5:], t[:-1], t[::2], t[::-1], t[8:2:-2], t[20:], t[5:2], t[:], u[1:7:2], u[::-1], u[-1:]
l[:2], l[1:], l[::-1], l[5:], l[-2:], l[::2], (1, 2, 3)[1:], range(10)[2:8:3], range(10)[::-1]
l[::0]
l["a":]
d[1:2]
nil[1:]
zzz[1:]
messages[::-1][0].role, messages[1:] | length, messages[-1]["content"][0]["text"]
[1, "a", none, true, 1.5, [2], (3,), (), {"k": "v"}]
{"a": 1, "b": [1, {"c": none}], 3: "x", none: 4, true: 5, 1.5: 6, (1, 2): 7}
{"a": 1, "a": 2}
{[1]: 2}
(1), (1,), (1, 2), ()
1, 2
"it's", 'say "hi"', "a\nb\tc\\d\x41\u00e9\U0001F600\101\0", 'a\'b', "a\qb"
["it's", 'say "hi"', "both ' and \"", "a\nb\tc\\", "é\x00\x1b\x7f\u2028\u00ad😀"]
[ctl, q1, q2, q3]
"a" "b" 'c'
"\é"
"\x4"
"\ud800"
true, false, none, True, False, None
"%s and %d" % ("a", 3), "%5.2f|%-6s|%06d|%x|%X|%o|%e|%g" % (3.14159, "ab", -42, 255, 255, 8, 12345.678, 0.0001)
"%(a)s %(b)05d" % {"a": "x", "b": 42}, "%%", "%r %s" % ("it's", none), "%c%c" % (65, "b"), "%+d % d" % (3, 4), "%s" % l, "%s" % d
"%5s|%-5s|%.2s" % ("abc", "abc", "abc"), "%*d" % (5, 42), "%.3d" % 7, "%#x %#o" % (255, 8), "%i" % 3.99, "%G" % 1e-10
"%s %s" % "a"
"%s" % (1, 2)
"%d" % "a"
"%z" % 1
"%" % 1
"no" % 1
"no" % ()
"{} {}".format("a", 1), "{1} {0}".format("a", "b"), "{x} {y}".format(x=1, y="z"), "{{}}".format(), "{0[1]} {0[0]}".format(l), "{m[role]}".format(m=messages[0])
"{:>5}|{:<5}|{:^5}|{:*^7}|{:05d}|{:.2f}|{:,}|{:x}|{:+d}|{:e}".format("a", "b", "c", "d", 42, 3.14159, 1234567, 255, 5, 12345.678)
"{!r} {!s}".format("it's", none), "{:{w}}|".format("a", w=4), "{:.3}".format("abcdef"), "{:>6.2f}".format(1.005), "{:b} {:o} {:#x}".format(5, 8, 255)
"{:%}".format(0.25), "{:.1%}".format(0.256), "{:,.2f}".format(1234567.891), "{:_}".format(1234567), "{}".format(1.0), "{:g}".format(1e20), "{:5}|".format(true), "{:d}".format(true)
"{} {1}".format(1, 2)
"{".format(1)
"}".format(1)
"{}".format()
"{a}".format(b=1)
"{:d}".format("a")
"{:5}".format(none)
"{0.real.x}".format(1)
"{a[b]}".format_map({"a": {"b": 3}})
range(3) | list, range(1, 4) | list, range(5, 0, -2) | list, range(3, 1) | list, range(3), range(0, 10, 3), range(3)[1], range(3) | length
range(100000) | length
range(100001)
range(1, 2, 0)
range("a")
range()
dict(a=1, b=2), dict({"x": 1}, y=2), dict([("k", "v")]), dict()
dict(1)
dict([1])
namespace(a=1).a, namespace(a=1).b, namespace(a=1)["a"], namespace({"q": 2}).q, namespace(a=1)
cycler("a", "b").next(), cycler(1).current
cycler()
joiner("; ")(), joiner()()
l.append(1)
l.append
l.append is defined, d.update is defined, l.pop is defined, d.pop is defined, d.setdefault is defined, l.copy() is defined
d.update({"a": 1})
d.pop("b")
l.sort()
l.index(1), l.count(3), s.index("c"), (1, 2, 1).count(1), (1, 2).index(2), l.copy(), d.copy() == d
l.index(99)
d.get("b"), d.get("zz"), d.get("zz", "dflt"), d.get("c").x[0], d.keys() | list, d.values() | list | length, d.items() | list | first
d.get()
d.keys(), d.values(), {"a": 1}.items(), ed.keys()
d.get([1])
d | length, d | list, d | first, d | last, d | sort, d | join(","), d | dictsort | map("first") | list
raise_exception("bad thing")
raise_exception("bad\nthing\x1b")
raise_exception(1)
strftime_now("%Y-%m-%d"), strftime_now("%d %b %Y"), strftime_now("%A, %B %d, %Y %H:%M:%S %p %I %j %y %%"), strftime_now("%-d %e %F %T")
n(1)
t.upper(1)
t.upper(x=1)
t.split(), t.split(" "), t.split("o"), t.split("x"), "a,b,,c".split(","), "a,b,c".split(",", 1), "a b  c ".split(none, 1), "".split(), "".split(","), " a  b ".split()
t.split("")
"a,b,c".rsplit(",", 1), "a b  c ".rsplit(none, 1), "a,b,c".rsplit(","), " a  b ".rsplit(), "aXbXc".rsplit("X", maxsplit=1), "a--b--c".rsplit("--", 1)
lines.splitlines(), lines.splitlines(true), "".splitlines(), "\n".splitlines(), "a\x0bb\x1cc\u2028d".splitlines()
sp.strip() ~ "|", sp.lstrip() ~ "|", sp.rstrip() ~ "|", "xxaxx".strip("x"), "abcba".strip("ab"), "abc".lstrip("cba"), "日本語日".strip("日"), "\u00a0a\u3000".strip(), "x".strip("")
"a".strip(1)
t.startswith("two"), t.startswith("x"), t.startswith(("x", "t")), t.endswith("words"), t.endswith(("a", "b")), t.startswith("o", 2), t.endswith("w", 0, 2), "".startswith("")
t.startswith(["t"])
t.find("o"), t.find("zz"), t.rfind("o"), t.find("o", 3), t.find("o", 3, 5), u.find("日"), u.rfind("ö"), t.find(""), t.find("", 99), t.rfind("")
t.index("w"), t.rindex("o")
t.index("zz")
t.count("o"), t.count(""), t.count("zz"), "aaa".count("aa"), u.count("ö")
t.replace("o", "0"), t.replace("o", "0", 1), t.replace("", "-"), t.replace("zz", "y"), "aaa".replace("aa", "b"), u.replace("日", ""), "ab".replace("", "-", 2)
t.upper(), t.lower(), t.title(), t.capitalize(), t.swapcase(), u.upper(), u.lower(), u.title(), u.capitalize(), u.swapcase(), u.casefold(), greek.lower(), greek.title(), greek.capitalize()
"ŉ ﬁ ǆ İ ΐ ǅ".upper(), "ŉ ﬁ ǆ İ ΐ ǅ".lower(), "ŉ ﬁ ǆ İ ΐ ǅ".title(), "ŉ ﬁ ǆ İ ΐ ǅ".swapcase(), "they're bill's 3rd a1b".title()
"abc".isalpha(), "ab1".isalpha(), "123".isdigit(), "²".isdigit(), "²".isdecimal(), "½".isnumeric(), "".isdigit(), "ab1".isalnum(), " \t".isspace(), "aB".islower(), "AB".isupper(), "Ab Cd".istitle(), "ab_1".isidentifier(), "1a".isidentifier(), "é".isascii(), "a\n".isprintable(), "".isprintable()
"a".center(5) ~ "|", "ab".center(5, "*"), "a".ljust(3, "-"), "a".rjust(3), "5".zfill(3), "-5".zfill(4), "+a".zfill(2), "abc".center(2), "a\tb".expandtabs(4), "日".center(4, "本")
"a".center(5, "ab")
",".join(["a", "b"]), ",".join("abc"), "".join([]), ",".join(d), ", ".join(("x",))
",".join([1])
",".join(1)
"a=b=c".partition("="), "a=b=c".rpartition("="), "abc".partition("="), "abc".rpartition("=")
"prefix-x".removeprefix("prefix-"), "x.suffix".removesuffix(".suffix"), "x".removeprefix("y"), "abc".removesuffix("")
"x".encode
"x".format_map is defined, "x".nope is defined
t | upper, t | lower, t | title, t | capitalize, "don't (stop) a-b it's" | title, u | upper, n | upper, none | upper, [1] | upper
t | trim, sp | trim ~ "|", "xxaxx" | trim("x"), n | trim, nil | trim
t | length, u | length, l | length, d | length, e | length, l | count
n | length
nil | length
t | first, t | last, l | first, l | last, e | first, e | last, empty | first, empty | last, range(5) | last
(empty | first) + 1
t | list, u | list, d | list, range(3) | list
nil | list
n | list
l | join, l | join(", "), s | join("-"), people | join(", ", attribute="name"), people | map(attribute="age") | join("+"), "abc" | join("."), l | join(1), [none, 1.5, true] | join(" ")
n | join
t | replace("o", "0"), t | replace("o", "0", 1), n | replace("7", "8"), t | replace("", "."), t | replace("o", 1)
t | reverse, l | reverse | list, u | reverse, range(3) | reverse | list, d | reverse | list
l | sort, s | sort, s | sort(case_sensitive=true), l | sort(reverse=true), s | sort(true), people | sort(attribute="age") | map(attribute="name") | list, people | sort(attribute="age,name") | map(attribute="name") | list, people | sort(attribute="age", reverse=true) | map(attribute="name") | list, "hello" | sort
[1, "a"] | sort
[none, none] | sort
[none, 1] | sort
[zzz, zzz] | sort | length
nested | sort(reverse=true), [[2, 1], [1, 2], [1]] | sort, nested | sort(attribute=1), [(1, "b"), (1, "a")] | sort
s | unique | list, [1, 1.0, true, 2] | unique | list, s | unique(true) | list, people | unique(attribute="age") | map(attribute="name") | list, "aAbB" | unique | join
people | groupby("age") | map("first") | list, people | groupby("age") | map(attribute="list") | map("length") | list, people | groupby("town", default="-") | map(attribute="grouper") | list, people | groupby(attribute="name") | first | length
people | groupby("town")
d | dictsort | map("first") | list, d | dictsort(true) | map("first") | list, {"a": 2, "b": 1} | dictsort(by="value"), {"a": 2, "b": 1} | dictsort(false, "key", true), d | items | map("first") | list
d | dictsort(by="nope")
n | dictsort
d | dictsort(by="value")
[1, 2] | items | list
zzz | items | list
range(7) | batch(3) | list, range(7) | batch(3, "x") | list, range(3) | batch(5) | list, empty | batch(2) | list
range(7) | slice(3) | list, range(7) | slice(3, "x") | list, range(2) | slice(4, 0) | list
range(7) | slice(0) | list
l | sum, [1.5, 2] | sum, people | sum(attribute="age"), people | sum("age", 10), empty | sum, [[1], [2]] | sum(start=[])
s | sum
l | min, l | max, s | min, s | max, s | max(true), people | max(attribute="age"), empty | min, ["b", "B", "a", "A"] | min, ["b", "B", "a", "A"] | max
[1, "a"] | min
"42" | int, "42.9" | int, "x" | int, "x" | int(7), "0x1f" | int(0, 16), "ff" | int(base=16), "0b11" | int(0, 2), f | int, nil | int, " 42 " | int, "-7" | int, "1_000" | int, yes | int, [] | int, "1e3" | int, "" | int(-1), "0o17" | int(0, 0), "010" | int(0, 0)
"42" | float, "x" | float, "x" | float(1.5), n | float, "1e3" | float, " 1.5 " | float, nil | float, "1." | float, ".5" | float, "." | float, "1e" | float
zzz | int
1e400 | int
"1e400" | int
-5 | abs, neg | abs, -2.5 | abs, true | abs
t | abs
2.5 | round, 3.5 | round, 2.675 | round(2), 2.5 | round(0, "ceil"), 2.5 | round(method="floor"), 7 | round, 1234 | round(-2), 1250 | round(-2), 1350 | round(-2), 2.15 | round(1, "ceil"), -2.5 | round, 1e300 | round(2), -1250 | round(-2), 0.5 | round, 1.5 | round
2.5 | round(0, "nope")
t | round
42 | string, nil | string, f | string, l | string, t | string
zzz | default, zzz | default("x"), e | default("x"), e | default("x", true), nil | default("x"), nil | d("x", true), 0 | default("z", boolean=true), zzz | d(l) | first
d.zz | default("x")
zzz.y | default("x")
html | escape, html | e, html | safe, html | forceescape, "<b>" | safe | upper, ("<b>" | safe) ~ "<i>", ("<b>" | safe) + "<i>", "<i>" + ("<b>" | safe), ("%s" | safe) % "<", ("<b>" | safe) | e, ("<b>" | safe) * 2, ("<,>" | safe).split(","), ("<b>" | safe)[0] + "<", ("<b>" | safe) | string + "<"
[("<b>" | safe), "<"] | join("&"), (", " | safe).join(["<", "a"]), ("<{}>" | safe).format("<"), ("ab" | safe).replace("a", "<"), [("x" | safe)]
html | striptags, "<!-- c --> a  <i>b</i>\n&amp; &lt;x&gt; < c" | striptags
"a b/c?ä=1&" | urlencode, {"a b": "c/d", "e": 1} | urlencode, [("x", "y z")] | urlencode, 42 | urlencode
"a\nb\n\nc" | indent, "a\nb" | indent(2), "a\nb" | indent("> "), "a\nb" | indent(2, true), "a\n\nb" | indent(2, blank=true), "a\n" | indent, "" | indent(2, true), "a\r\nb\n" | indent(1, true, true), "\n" | indent(2), "\n\n" | indent(2, true, true)
n | indent
"foo bar baz qux" | truncate(9), "foo bar baz qux" | truncate(9, true), "foo bar baz qux" | truncate(11), "foo bar baz qux" | truncate(11, false, "...", 0), "foo" | truncate(3), "日本語日本語日本語日本語" | truncate(5, true, "…", 0), "foobarbazquxfoobar" | truncate(6)
"foo" | truncate(2)
"a b-c_d e'f 日本 x2" | wordcount, "" | wordcount
"%s-%s" | format("a", 1), "%(x)s" | format(x=2), "%d%%" | format(50)
"%s" | format
"%s" | format(1, x=2)
"ab" | center(6) ~ "|", "ab" | center(7) ~ "|", n | center(3)
1 | filesizeformat, 999 | filesizeformat, 1000 | filesizeformat, 1500000 | filesizeformat, 1536 | filesizeformat(true), "2000" | filesizeformat, 0 | filesizeformat
people | map(attribute="name") | list, people | map(attribute="town") | list, people | map(attribute="town", default="?") | list, s | map("upper") | list, s | map("replace", "a", "z") | list, nested | map("join", "-") | list, nested | map(attribute=0) | list, nested | map("first") | list, ["1", "2"] | map("int") | sum, nested | map(attribute="1") | list, messages | map(attribute="content.0.text") | list | last
people | map(attribute="name.x.y") | list
s | map | list
s | map("nope") | list
s | map(attribute="x", foo=1) | list
n | map("upper") | list
0 | map("upper") | list, nil | select | list
range(6) | select("odd") | list, range(6) | reject("odd") | list, range(6) | select("gt", 3) | list, [0, 1, "", "a", none] | select | list, [0, 1, "", "a", none] | reject | list, range(9) | select("divisibleby", 3) | list, s | select("in", ["a", "b"]) | list, s | reject("equalto", "b") | list, s | select("==", "A") | list
people | selectattr("town") | map(attribute="name") | list, people | selectattr("age", "equalto", 3) | map(attribute="name") | list, people | rejectattr("town", "defined") | map(attribute="name") | list, people | selectattr("age", "gt", 2) | list | length, people | rejectattr("age", "eq", 3) | list, people | selectattr("town", "undefined") | map(attribute="name") | first, messages | selectattr("role", "equalto", "user") | list | length, messages | selectattr("content", "string") | map(attribute="content") | join
range(6) | select("nope") | list
people | selectattr | list
people | selectattr("age", "gt", "x") | list
(messages | selectattr("role", "equalto", "nobody")) is defined, ("yes" if messages | selectattr("role", "equalto", "nobody") else "no")
(messages | selectattr("role", "equalto", "user") | length)
(l | map("string"))[0]
(s | map("upper") | list)[0], s | map("upper") | first, "A" in s | map("upper"), (s | map("upper")) is iterable, (s | map("upper")) is sequence, s | map("upper") | string | truncate(10, true, "", 0)
d | tojson, l | tojson, t | tojson, nil | tojson, yes | tojson, f | tojson, n | tojson, u | tojson, ctl | tojson, html | tojson, (1, 2) | tojson, [] | tojson, {} | tojson, 1e100 | tojson, 1.0 | tojson
tools | tojson, tools[0] | tojson(indent=2), tools[0] | tojson(indent=4), d | tojson(sort_keys=true), d | tojson(separators=(",", ":")), u | tojson(ensure_ascii=true), d | tojson(indent="\t"), d | tojson(indent=0), [[], {}, [{}]] | tojson(indent=1), u | tojson(true), ctl | tojson(ensure_ascii=true)
{1: 2, none: 3, true: 4, 1.5: 5} | tojson, {"a": {"b": [1, {"c": (1, 2)}]}} | tojson(indent=3, separators=(";", "="))
{(1, 2): 3} | tojson
zzz | tojson
namespace() | tojson
range(3) | tojson
(l | map("string")) | tojson
{"b": 1, 2: 3} | tojson(sort_keys=true)
d | tojson(nope=1)
d | tojson(separators=1)
d | attr("b"), t | attr("nope"), (d | attr("get"))("b"), n | attr("x") is defined
messages | length > 3 and messages[0].role == "system", messages[0]["content"] | upper ~ "!"
t|upper|lower|title, (t|upper)[0:3], t.upper()|lower, -1|abs, -n|abs, n|string ~ "x", 1 + "2"|int, not t|length == 3
l[0] + l[1] * l[2] - 1 // 2
"a" if "x" in t else "b" if "w" in t else "c"
t is string and n is number or zzz is defined
(t is string) == true
[t is string, n is not string]
d.c.x[4] * 2, d["c"]["x"][1]|upper, {"k": d.b + 1}["k"]
u[3:5] ~ u[6:], u|length ~ "/" ~ u|list|length
lines|replace("\n", "|")|replace("\r", "/")
[] or {} or () or "" or 0 or none or "end"
1 if none else zzz
"abc"[5] is undefined, ""[0] is undefined, [][0] is undefined
"a" not in t and "b" not in l
{"a": zzz}, [zzz], (zzz,)
[1, 2, 3,], (1, 2,), {"a": 1,}
n.real is defined
"x".join
range
loop is defined, caller is defined, varargs is defined, self is defined
none.__class__, t.__class__, l.__len__ is defined, d._x is defined
big / 1, big * 1.0, big == big * 1.0, 9007199254740993 < 9007199254740992.0
1e999, -1e999
inf | float, ninf | float, nan | float, nan | float == nan | float, nan | float < 1, nan | float > 1, inf | float > 1e308, inf | float | int(3), inf | int(4), [inf | float] | tojson
0.1 * 3, 1e22, 1e21, 123456.789e3, 5e-324, 1.7976931348623157e308, -0.0, 0.0 == -0.0
2 ** 0.5
0 ** -1
f ** 2, 2.0 ** -2, 1.5 ** 3
"b" > "a", "é" > "z", "😀" > "\ue000", "a" < "aa", "" < "a"
[1, [2, 3]] < [1, [2, 4]], [] < [1], [1] < []
(1, 2)[0], (1, 2)[5] is defined
"a,b;c".replace(",", ";").split(";")|last
'%s' % zzz, '%s' % none
l|list == l, l|sort|first
namespace(x=namespace(y=1)).x.y
t|string is string, html|safe is string, html|safe is escaped
'x' ~ (1, 'a') ~ ['b'] ~ {'c': none}
"é"|urlencode, "日"|upper
1 == 1 == 1, 1 < 2 > 1, 3 > 2 > 2
not yes and no, not (yes and no)
-2 ** 2, (-2) ** 2, 2 ** -1 * 4
7 // 2 * 2 + 7 % 2 == 7
1.0, 10.0 / 4, 3 / 1, 2 * 0.5, 4 // 2.0
true and "x", false or none
{"a": 1}.a, {"a": 1}["a"], {"get": 1}.get is callable, {"get": 1}["get"]
[[1, 2], [3]] | map("length") | list, [[1, 2], [3]] | map("sum") | list, [[3, 1], [2]] | map("sort") | list
"abc" | map("upper") | join, d | map("upper") | sort | join
["a", "b"] | map("tojson") | join(","), [1, 2] | map("string") | map("length") | list
people | map(attribute="name") | map("lower") | sort | join(" ")
[{"a": {"b": 1}}, {"a": {}}] | map(attribute="a.b", default=0) | list
[{"a": {"b": 1}}] | selectattr("a.b", "eq", 1) | list | length
"a\\nb", 'a\\'
l | random is defined
"<" ~ n ~ ">" | e
t | wordwrap(4)
x.y.z if x is defined else "none"
messages | map(attribute="role") | unique | list, messages | groupby("role") | list | length
(1, 2) | first, "ab" | last, {"z": 1} | first
"{0}{1}{0}".format("a", "b"), "{a.x}".format(a={"x": 1}), "{:>{w}.{p}f}".format(3.14159, w=8, p=2)
" ".join(t.split()[::-1]), t.split(" ")[0][0]|upper
caller()
varargs
self
""".strip("\n").split("\n")

TEMPLATES = [
    # text, white space
    "", "\n", "\n\n", "a\n", "a\n\n", "a\r\nb\rc\r\n", "  {{ n }}  \n", "{{ n }}\n{{ n }}\n", "a\n  {% if 1 %}\n  b\n  {% endif %}\nc",
    "  {% if 1 %}x{% endif %}  \n  y", "a {% if 1 %} b {% endif %} c", "a\n{%- if 1 -%}\n b \n{%- endif -%}\n c", "{%+ if 1 %}\n  x{% endif +%}\ny",
    "  {%+ if 1 %}x{%+ endif %}", "\n\n  {%- if 1 %}\n\n  x\n\n{%- endif %}\n\n", "{{- n -}}  x  {{- n -}}", " {{- n }} {{ n -}} ", "{#- c -#} x {#- c #}\n y {# c -#}  z",
    "a\n  {# comment #}\nb", "a {# one\ntwo #} b\n{# c #}\nd", "{# a #}{# b #}x", "  {# c #}  {# d #}\nx", "{% if 1 %}\n\n{% endif %}\n\n", "{%if 1%}a{%endif%}", "{{n}}{{ n}}{{n }}",
    "a\u00a0\n\u00a0{%- if 1 -%}\u2003 b {%- endif %}", "{% raw %}{{ n }} {% if %}{# #}{% endraw %}", "a\n  {% raw %}\n  {{ x }}\n  {% endraw %}\nb", "{%- raw -%} x {%- endraw -%} y",
    "  {% raw +%} x {%+ endraw +%}\n y", "{% raw %}{% endraw %}", "{% raw %}\n\n{% endraw %}\nx", "{%\n if\n 1\n %}x{%\n endif %}", "{{\nn\n}}", "{{ '}}' }}{{ '%}' }}{{ \"#}\" }}", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{ {}}}", "{{ {'a':{}}}}",
    "{", "{ {", "}}", "%}", "#}", "{ % if % }", "{%", "{{", "{#", "{# x", "{{ n", "{{ n }", "{% if 1 %}", "{% endif %}", "{{ }}", "{% %}", "{% nope %}", "{{ n n }}", "{{ ) }}", "{{ ( }}", "{{ (1] }}", "{{ 'a }}", "{{ 1.2.3 }}", "{{ a b }}", "{{ n; }}", "{{ ! }}", "{{ $ }}", "{{ n | }}", "{{ n is }}", "{{ n. }}", "{{ n.1a }}", "{{ [1 }}", "{{ {1} }}", "{{ {1: } }}", "{% raw %}x", "{% raw %}x{% endraw",
    "{% if %}x{% endif %}", "{% for %}{% endfor %}", "{% for x of l %}{% endfor %}", "{% for x in %}{% endfor %}", "{% for 1 in l %}{% endfor %}", "{% set 1 = 2 %}", "{% set x %}", "{% set true = 1 %}", "{% set x = %}", "{% macro %}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m(1) %}{% endmacro %}",
    "{% include 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% extends 'x' %}", "{% break %}", "{% continue %}", "{% else %}", "{% for x in l %}{% else %}{% else %}{% endfor %}",
    # set
    "{% set x = 1 %}{{ x }}", "{% set x = 1, 2 %}{{ x }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = 'xy' %}{{ b }}{{ a }}", "{% set a, b = l %}", "{% set a, b = [1] %}", "{% set (a, (b, c)) = (1, (2, 3)) %}{{ a }}{{ b }}{{ c }}", "{% set a, b = 1 %}",
    "{% set ns = namespace(a=1) %}{% set ns.a = 2 %}{% set ns.b = ns.a + 1 %}{{ ns.a }}{{ ns.b }}", "{% set ns = namespace() %}{% set ns.x, y = 1, 2 %}{{ ns.x }}{{ y }}", "{% set x = {} %}{% set x.y = 1 %}", "{% set zzz.y = 1 %}", "{% set x %}a{{ n }}b{% endset %}[{{ x }}]", "{% set x | upper %}a{{ n }}b{% endset %}{{ x }}", "{% set x | upper | replace('A', 'z') %}a{% endset %}{{ x }}",
    "{% set x %}{% for i in l %}{{ i }}{% endfor %}{% endset %}{{ x|length }}", "{% set n = n + 1 %}{{ n }}", "{% set t = t|upper %}{% set t = t ~ '!' %}{{ t }}", "{% if no %}{% set q = 1 %}{% endif %}{{ q is defined }}{{ q }}", "{% if no %}{% set n = 1 %}{% endif %}{{ n }}", "{% if yes %}{% set n = 1 %}{% else %}{% set n = 2 %}{% endif %}{{ n }}",
    "{{ n }}{% set n = 1 %}{{ n }}", "{% set n = n %}{{ n }}", "{% for i in l %}{{ n }}{% endfor %}{% set n = 1 %}{{ n }}", "{% if 1 %}{% for i in l %}{% set n = i %}{{ n }}{% endfor %}{% endif %}{{ n }}", "{% macro m() %}{{ n }}{% endmacro %}{{ m() }}{% set n = 9 %}{{ m() }}", "{% set n %}{{ n }}x{% endset %}{{ n }}",
    # for
    "{% for x in l %}{{ x }},{% endfor %}", "{% for x in empty %}a{% else %}none{% endfor %}", "{% for x in l %}{{ x }}{% else %}none{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for k, v in d|dictsort %}{{ k }}{% endfor %}", "{% for a, b in nested %}{{ a }}-{{ b }};{% endfor %}", "{% for c in u %}[{{ c }}]{% endfor %}", "{% for x in n %}{% endfor %}", "{% for x in nil %}{% endfor %}", "{% for x in zzz %}a{% else %}b{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}", "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}", "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}", "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }}{% endfor %}", "{% for x in l %}{{ loop }}{% endfor %}", "{% for x in l %}{{ loop.nope }}{{ loop['index'] }}{% endfor %}", "{% for x in l %}{{ loop.cycle() }}{% endfor %}",
    "{% for x in range(6) if x is odd %}{{ x }}{{ loop.index }}{{ loop.last }}{{ loop.length }};{% endfor %}", "{% for x in l if x > 5 %}{{ x }}{% else %}none{% endfor %}", "{% for x in l if loop.first %}{{ x }}{% endfor %}", "{% for m in messages if m.role == 'user' %}{{ loop.index }}{{ m.content }}{% endfor %}", "{% for x in range(6) if x % 2 %}{{ loop.previtem }}{{ loop.nextitem }},{% endfor %}", "{% set ns = namespace(stop=false) %}{% for x in range(9) if not ns.stop %}{{ x }}{% if x == 3 %}{% set ns.stop = true %}{% endif %}{% endfor %}",
    "{% for x in l|map('string') %}{{ loop.last }}{{ loop.length }}{{ x }};{% endfor %}", "{% for x in l|map('string') %}{{ loop.length }}{{ loop.index }}{{ loop.revindex }}{{ x }};{% endfor %}", "{% for x in l|map('string') %}{{ loop.nextitem }}{% if loop.first %}{{ loop.length }}{% endif %}{{ x }};{% endfor %}", "{% for a in nested %}{% for b in a %}{{ loop.index }}{{ b }}{% endfor %}{{ loop.index }};{% endfor %}", "{% for a in nested %}{% set outer = loop %}{% for b in a %}{{ outer.index }}{{ loop.index }},{% endfor %}{% endfor %}",
    "{% for x in l %}{% set x = x * 2 %}{{ x }}{% endfor %}{{ x }}", "{% set x = 0 %}{% for i in l %}{{ x }}{% set x = x + i %}{{ x }};{% endfor %}{{ x }}", "{% set ns = namespace(x=0) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "{% for x in range(9) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% break %}{% else %}none{% endfor %}", "{% for x in l %}{% continue %}{% else %}none{% endfor %}", "{% for x in l %}{{ x }}{% if x == 1 %}{% break %}{% endif %}{% else %}none{% endfor %}", "{% for a in nested %}{% for b in a %}{% if b == 3 %}{% break %}{% endif %}{{ b }}{% else %}e{% endfor %};{% endfor %}", "{% for x in l %}{% for y in empty %}{% else %}{% break %}{% endfor %}{{ x }}{% endfor %}",
    "{% for x in tree recursive %}{{ loop.depth }}{{ x.v }}{% if x.k %}({{ loop(x.k) }}){% endif %}{% endfor %}", "{% for x in tree recursive %}{{ loop.depth0 }}{{ loop.index }}{{ x.v }}{{ loop(x.k) }};{% else %}-{% endfor %}", "{% for x in tree if x.v != 3 recursive %}{{ x.v }}[{{ loop(x.k) }}]{% endfor %}", "{% for x in l %}{{ loop([1]) }}{% endfor %}", "{% for x in l %}{% set loop = 1 %}{% endfor %}", "{% for loop in l %}{{ loop }}{% endfor %}", "{% for x in l %}{% set y %}{{ x }}{% if x == 1 %}{% continue %}{% endif %}{% endset %}<{{ y }}>{% endfor %}", "{% for x in [1, [2, [3, []]]] recursive %}{% if x is number %}{{ x }}{% else %}<{{ loop(x) }}>{% endif %}{% endfor %}",
    "{% for x in (1, 2) %}{{ x }}{% endfor %}{% for x in 1, 2 %}{{ x }}{% endfor %}", "{% for x in range(3) %}{% for x in range(2) %}{{ x }}{% endfor %}{{ x }};{% endfor %}", "{% for i in range(3) %}{{ '%d' % i }}{{ ', ' if not loop.last }}{% endfor %}", "{% for m in messages %}{% if loop.first and m.role == 'system' %}{{ m.content }}{% elif m.role == 'user' %}{{ loop.index0 }}{% else %}-{% endif %}{% endfor %}", "{% for x in l recursive %}{% if loop.depth < 3 %}{{ loop(l) }}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{{ x if loop.index is odd }}{% endfor %}",
    # if, with, filter, generation, print
    "{% if n > 5 %}a{% elif n > 3 %}b{% else %}c{% endif %}", "{% if e %}a{% elif n == 7 %}b{% elif yes %}x{% else %}c{% endif %}", "{% if zzz %}a{% endif %}{% if not zzz %}b{% endif %}", "{% if l and not empty %}x{% endif %}", "{% if n == 7: %}x{% endif %}", "{% if (1, 2) %}x{% endif %}", "{% if n, %}x{% endif %}", "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}", "{% with %}{% set n = 1 %}{{ n }}{% endwith %}{{ n }}", "{% with n = 1, m = n %}{{ n }}{{ m }}{% endwith %}", "{% with a = l %}{% with a = a|length %}{{ a }}{% endwith %}{{ a }}{% endwith %}",
    "{% filter upper %}a{{ t }}b{% endfilter %}", "{% filter replace('a', 'b')|upper %}xax{% endfilter %}", "{% filter indent(2) %}a\nb{% endfilter %}", "{% filter nope %}x{% endfilter %}", "{% generation %}x{{ n }}{% endgeneration %}", "{% generation %}{% set q = 1 %}{% endgeneration %}{{ q }}", "{%- generation -%} x {%- endgeneration -%} y", "{% print n, t %}", "{% print n %}", "{% for x in l %}{% filter upper %}a{% if x == 1 %}{% break %}{% endif %}{% endfilter %}{% endfor %}",
    # macros
    "{% macro m(a, b=2, *c) %}{% endmacro %}", "{% macro m(a, b=2) %}{{ a }}-{{ b }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=1) }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ m(1, 2, 3) }}", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a) %}{{ a is defined }}{{ a }}{% endmacro %}{{ m() }}", "{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*5) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(**l) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}x{{ n }}{% endcall %}", "{% macro m() %}{{ caller(1, 2) }}{{ caller(3, 4) }}{% endmacro %}{% call(a, b) m() %}[{{ a }}{{ b }}]{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% macro m(x) %}{{ x }}{{ caller() }}{% endmacro %}{% call m('a') %}b{% endcall %}", "{% call n %}x{% endcall %}", "{% macro m() %}{% set n = 1 %}{{ n }}{% endmacro %}{{ m() }}{{ n }}", "{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 2 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}{{ m() }}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}", "{% macro f(i) %}{{ i }}{% if i > 0 %}{{ f(i - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{{ m() }}{% macro m() %}x{% endmacro %}",
    "{% macro m(a) %}{% for x in a %}{{ x }}{{ loop.index }}{% endfor %}{% endmacro %}{{ m(l) }}|{{ m('ab') }}", "{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ m }}{{ m.name }}", "{% macro m(x) -%}\n  {{ x }}\n{%- endmacro %}[{{ m(1) }}]", "{% macro m() %}{{ n }}{% endmacro %}{% set n = 1 %}{{ m() }}", "{% macro m(n) %}{{ n }}{% endmacro %}{{ m(1) }}{{ n }}", "{% if 1 %}{% macro m() %}x{% endmacro %}{% endif %}{{ m() }}", "{% macro m(x, y='d') %}{{ x ~ y }}{% endmacro %}{{ m(m('a'), m('b', y='c')) }}", "{% macro m(a) %}{{ a|length }}{% endmacro %}{{ m('abc') ~ m(l) }}", "{% set x = joiner(', ') %}{% for i in l %}{{ x() }}{{ i }}{% endfor %}", "{% set c = cycler('a', 'b', 'c') %}{% for i in range(5) %}{{ c.next() }}{% endfor %}{{ c.current }}{% set z = c.reset() %}{{ c.current }}", "{% macro m() %}{{ kwargs.x }}{{ kwargs|length }}{% endmacro %}{{ m(x=1, y=2) }}", "{% macro m(kwargs) %}{{ kwargs }}{% endmacro %}{{ m(1) }}", "{% macro m(caller=none) %}{{ caller }}{% endmacro %}{{ m() }}", "{% macro m(_x) %}{{ _x }}{% endmacro %}{{ m(1) }}", "{% set ns = namespace(f=none) %}{% macro m(x) %}<{{ x }}>{% endmacro %}{% set ns.f = m %}{{ ns.f(1) }}", "{% macro o() %}{% macro i() %}I{{ n }}{% endmacro %}{{ i() }}{% endmacro %}{{ o() }}", "{% macro m() %}{% call w() %}{{ n }}{% endcall %}{% endmacro %}{% macro w() %}({{ caller() }}){% endmacro %}{{ m() }}", "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(b=1, *[2]) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(a=1, b=2) }}", "{% macro m() %}{% for x in l %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(v) m() %}{{ v * 2 }},{% endcall %}",
    # chat templates in small
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' }}{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}{% if part['type'] == 'text' %}{{ part['text'] }}{% else %}<image>{% endif %}{% endfor %}{% endif %}{{ '\\n' }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
    "{%- if messages[0].role == 'system' -%}\n    {%- set system = messages[0].content -%}\n    {%- set messages = messages[1:] -%}\n{%- else -%}\n    {%- set system = '' -%}\n{%- endif -%}\n{{- system }}|{% for m in messages %}\n{{ m.role }}{% if not loop.last %},{% endif %}\n{% endfor %}",
    "{%- for t in tools %}\n{{- t.function.name }}: {{ t.function.parameters.properties | dictsort | map('first') | join(', ') }}\n{{ t | tojson(indent=2) }}\n{%- endfor %}", "{% set last = messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list | last %}{{ last }}",
    "{% for p in tools[0].function.parameters.properties.items() %}{{ p[0] }}={{ p[1].type }}{{ ' (' ~ p[1].enum | join('|') ~ ')' if p[1].enum is defined }};{% endfor %}", "{% if messages | length % 2 == 0 %}even{% else %}{{ raise_exception('odd') }}{% endif %}", "{% if messages[0].role != 'user' %}{{ raise_exception('Roles must alternate: ' ~ messages[0].role) }}{% endif %}",
    "{%- macro text(c) -%}{%- if c is string -%}{{- c -}}{%- else -%}{%- for p in c -%}{{- p.text if p.type == 'text' else '<img>' -}}{%- endfor -%}{%- endif -%}{%- endmacro -%}{%- for m in messages -%}{{ text(m.content) | trim }};{%- endfor -%}",
    "{{ messages }}", "{{ tools }}", "{% for m in messages %}{{ loop.previtem.role if loop.previtem else '^' }}>{{ m.role }} {% endfor %}", "{{ html }}{{ ctl }}", "{{ zzz }}{{ nil }}{{ yes }}{{ f }}{{ l }}{{ d }}",
    "{% set content = '<think>\\nhm\\n</think>\\n\\nA' %}{{ content.split('</think>')[-1].lstrip('\\n') }}|{{ content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') }}", "{%- set ns = namespace(found=false) -%}{%- for m in messages -%}{%- if m.role == 'assistant' and not ns.found -%}{%- set ns.found = true -%}{{ loop.index }}{%- endif -%}{%- endfor -%}{{ ns.found }}",
]


def environment():
    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("_generation"), [], [], body).set_lineno(line)

        def _generation(self, caller):
            return caller()

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(format):
        return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(format)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                       extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


def render(env, template, context):
    try:
        text = env.from_string(template).render(**json.loads(json.dumps(context)))
        text.encode()  # a lone surrogate is no text
        return {"rendered": text}
    except Exception as error:  # whatever a template may raise
        return {"error": f"{type(error).__name__}: {error}"[:200]}


# Where this evaluator means to differ: integers beyond 64 bits, powers that aren't whole numbers, what has an address in
# its text, chance, and names of Python's own (int.real, str.encode, wordwrap's and random's rules).
LEFT_OUT = {"9223372036854775807 + 1", "-9223372036854775807 - 2", "4611686018427387904 * 2", "10 ** 19", "3037000500 ** 2", 'd.items, d["items"]', "1e400 | int",
            "2 ** 0.5", "l.append", "1e999, -1e999", "n.real is defined", "range", "self", '"x".join', "l | random is defined",
            't | wordwrap(4)', '"x".encode', "loop is defined, caller is defined, varargs is defined, self is defined",
            "none.__class__, t.__class__, l.__len__ is defined, d._x is defined", '"{0.real.x}".format(1)', '"\\ud800"',
            '"1e400" | int'}


def main():
    env = environment()
    out = []
    for source in ["{{ " + e + " }}" for e in EXPRESSIONS if e not in LEFT_OUT] + TEMPLATES:
        out.append({"template": source, **render(env, source, CONTEXT)})
    with open(OUT, "w") as f:
        f.write('{"context":\n' + json.dumps(CONTEXT) + ',\n"cases":[\n' + ",\n".join(json.dumps(case) for case in out) + "\n]}\n")
    print(len(out), "cases,", sum("error" in case for case in out), "errors")


if __name__ == "__main__":
    main()
