"""template_cases.py: writes tests/data/chat/template_cases.json: small templates and the texts that Python's Jinja2
renders.

In, from that folder: template_context.json has the variables; template_expressions.txt has an expression per line,
each printed by its own template; template_sources.txt has a template per line, as JSON strings. Out: the cases; if
rendering fails, "error" says how. The environment has transformers' settings for chat templates: sandboxed and
immutable, trim_blocks, lstrip_blocks, break and continue, a generation block, tojson without escaping.

Left out are cases in which forerun differs on purpose: arithmetic beyond 64 bits, powers that are not whole numbers,
texts that contain addresses, random choices, and attributes of Python's own objects. Needs jinja2 3.1.6."""

import datetime
import json
import os

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/data/chat")
NOW = 1767323045  # Friday, 2 January 2026, 03:04:05 UTC


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
        now = datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc)
        return now.replace(tzinfo=None).strftime(format)  # transformers' clock has no time zone

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                       extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


def render(env, template, context):
    try:
        text = env.from_string(template).render(**json.loads(json.dumps(context)))
        text.encode()  # a lone surrogate is not a text
        return {"rendered": text}
    except Exception as error:  # a template may raise anything
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def main():
    env = environment()
    with open(f"{FOLDER}/template_context.json") as f:
        context = json.load(f)
    with open(f"{FOLDER}/template_expressions.txt") as f:
        sources = ["{{ " + line.rstrip("\n") + " }}" for line in f]
    with open(f"{FOLDER}/template_sources.txt") as f:
        sources += [json.loads(line) for line in f]
    cases = [{"template": source, **render(env, source, context)} for source in sources]
    with open(f"{FOLDER}/template_cases.json", "w") as f:
        lines = ",\n".join(json.dumps(case) for case in cases)
        f.write(f'{{"context":\n{json.dumps(context)},\n"cases":[\n{lines}\n]}}\n')
    print(len(cases), "cases,", sum("error" in case for case in cases), "errors")


if __name__ == "__main__":
    main()
