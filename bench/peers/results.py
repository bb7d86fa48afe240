#!/usr/bin/env python3
"""Compares speed, start and memory with those of the peers that build.sh makes, in one markdown table.

In: the command forerun, with bench_blas in its build folder; and the folder of build.sh. Its subfolder models/ has the
GGUF files, or `forerun synth` writes them there. Out: markdown, by default on standard output; progress on standard
error.

The engines run in turn (A B A B) on the same file with the same threads. Each pair gives a ratio; above 1 forerun is
better, below 1 it is worse. A figure is the median over the pairs. A ratio is not told if its quartiles are more than
--max-spread per cent apart.
"""
import argparse
import datetime
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPES, TYPES = ("gemma4-1b", "gemma4-e2b"), ("q4_0", "q8_0", "q4_k", "q6_k")
USUAL = [(SHAPES[0], kind) for kind in TYPES] + [(SHAPES[1], TYPES[0])]  # run without --full
FLOAT = (SHAPES[0], "bf16")
CONTEXT, ROWS = 128, (1, 4, 8)  # context and numbers of rows of the forwards that verify drafts
ROW_TIMINGS = 15  # timings of each number of rows in a process
PEERS = ("llama.cpp", "PyTorch", "OpenBLAS")
LESS_IS_BETTER = ("s", "ms", "MB")  # units of which less is better


# ----------------------------------------------------------------------------------------------- figures (--self-test)

def figure(ours, theirs, unit, max_spread):
    """Gives the figures of a row: both medians, and the ratio's median, lowest and highest value and verdict.

    >>> figure([15, 10, 5], [10, 10, 10], "tokens/s", 60)
    (10, 10, 1.0, 0.5, 1.5, 'even')
    >>> figure([4, 4, 4], [8, 10, 9], "ms", 20)[2:]
    (2.25, 2.0, 2.5, 'ahead')
    >>> figure([9], [10], "tokens/s", 20)[2:]
    (0.9, 0.9, 0.9, 'behind')
    >>> figure([10, 20, 10], [10, 10, 20], "tokens/s", 20)[5]
    'not told: spread 75%'
    """
    ratios = [b / a if unit in LESS_IS_BETTER else a / b for a, b in zip(ours, theirs)]
    middle, low, high = statistics.median(ratios), min(ratios), max(ratios)
    quarters = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 2 else (low, middle, high)
    verdict = "ahead" if quarters[0] > 1 else "behind" if quarters[2] < 1 else "even"
    spread = 100 * (quarters[2] - quarters[0]) / middle
    if spread > max_spread:
        verdict = f"not told: spread {spread:.0f}%"
    return statistics.median(ours), statistics.median(theirs), middle, low, high, verdict


def line(words, unit, figures):
    """Makes a row of the table. If forerun is behind, the row is bold.

    >>> line(["e2b", "tg128"], "tokens/s", (11, 6, 2.0, 1.0, 2.0, "even"))
    '| e2b | tg128 | tokens/s | 11.0 | 6.0 | 2.00 | 1.00 - 2.00 | even |'
    >>> line(["e2b", "start"], "s", (1.25, 1, 0.8, 0.75, 0.9, "behind"))
    '| e2b | start | s | 1.25 | 1.00 | **0.80** | 0.75 - 0.90 | **behind** |'
    >>> line(["e2b", "start"], "s", (1, 1, 1, 0.1, 9, "not told: spread 75%"))
    '| e2b | start | s | | | | | not told: spread 75% |'
    """
    ours, theirs, middle, low, high, verdict = figures
    if verdict.startswith("not told"):
        return f"| {' | '.join(words)} | {unit} | | | | | {verdict} |"
    digits = 2 if theirs < 5 else 1 if theirs < 100 else 0
    mark = "**" if verdict == "behind" else ""
    return (f"| {' | '.join(words)} | {unit} | {ours:.{digits}f} | {theirs:.{digits}f} | {mark}{middle:.2f}{mark} "
            f"| {low:.2f} - {high:.2f} | {mark}{verdict}{mark} |")


def middle_ns(row):
    """Gives the median of a test's samples.

    >>> middle_ns({"test": "tg2", "samples_ns": [30, 10, 20]})
    20
    """
    return statistics.median(row["samples_ns"])


def name_of(row):
    """Gives the name of a test by the fields that llama-bench and forerun bench model share.

    >>> name_of({"n_prompt": 0, "n_gen": 128, "n_depth": 4096})
    'tg128 @ d4096'
    """
    name = f"tg{row['n_gen']}" if row["n_gen"] else f"pp{row['n_prompt']}"
    return name + (f" @ d{row['n_depth']}" if row["n_depth"] else "")


def rates(rows):
    """Gives the tokens per second of each test.

    >>> rates([{"n_prompt": 512, "n_gen": 0, "n_depth": 0, "samples_ns": [4e9]}])
    {('pp512', 'tokens/s'): 128.0}
    """
    return {(name_of(row), "tokens/s"): (row["n_gen"] or row["n_prompt"]) * 1e9 / middle_ns(row) for row in rows}


def row_times(rows):
    """Gives T(K), the milliseconds of a forward of K rows, for each K.

    >>> row_times([{"rows": 4, "samples_ns": [2e6, 1e6, 3e6]}])
    {('T(4)', 'ms'): 2.0}
    """
    return {(f"T({row['rows']})", "ms"): middle_ns(row) / 1e6 for row in rows if row.get("rows")}


def best(rows, table, field, **what):
    """Gives the largest value of a field in a table of `forerun bench machine`; None if it is not in the table.

    >>> best([{"table": "memory", "n": 2, "x": 5.0}, {"table": "memory", "n": 1, "x": 9.0}], "memory", "x", n=2)
    5.0
    """
    found = [row[field] for row in rows if row["table"] == table and what.items() <= row.items()]
    return max((value for value in found if value is not None), default=None)


# ------------------------------------------------------------------------------------------------------------- running

def busy_seconds():
    """Gives the CPU seconds of all programs since the system started, and those of this process with its ended
    children."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system = map(int, stat.readline().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


def environment():
    """Gives the environment without variables that restrict a library, which some users set to get the same bits
    everywhere."""
    held = ("OPENBLAS_", "ONEDNN_", "DNNL_", "MKL_", "OMP_", "GOMP_", "KMP_", "ATEN_", "FORERUN_")
    return {name: value for name, value in os.environ.items() if not name.startswith(held)}


class Run:
    """A process that ended well: its output as JSON, its seconds from start to end, and its peak memory."""

    def __init__(self, *command):
        words = [str(word) for word in command]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            start = time.monotonic()
            child = subprocess.Popen(words, stdout=out, stderr=err, env=environment())
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            self.seconds, self.bytes = time.monotonic() - start, usage.ru_maxrss * 1024
            out.seek(0)
            err.seek(0)
            if child.returncode:
                sys.exit(f"{' '.join(words)}: exit {child.returncode}\n{err.read()[-1000:]}")
            self.rows = json.load(out)


class TorchDecode:
    """PyTorch in a process that runs all repetitions, because loading it takes longer than a measurement."""

    def __init__(self, python, folder, threads, count):
        self.count = count
        words = [python, f"{HERE}/peer_torch.py", "decode", folder, threads, count]
        self.child = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, env=environment(), text=True)
        self.versions = self.read()

    def read(self):
        text = self.child.stdout.readline()
        if not text:
            sys.exit(f"peer_torch.py: exit {self.child.wait()}")
        return json.loads(text)

    def rates(self):
        print(file=self.child.stdin, flush=True)
        return {(f"tg{self.count}", "tokens/s"): self.count * 1e9 / middle_ns(self.read())}

    def close(self):
        self.child.stdin.close()
        self.child.wait()


# ----------------------------------------------------------------------------------------------------------- the table

class Results:
    """The run and its table. Each line of the table is also printed on standard error at once."""

    def __init__(self, args):
        self.args = args
        self.lines, self.verdicts, self.versions = [], [], {}
        self.builds = [kind for kind in ("bin", "amx") if os.path.exists(self.peer("llama-bench", kind))]
        self.python = os.path.join(args.folder, "venv", "bin", "python")
        self.torch = self.installed("torch/__init__.py")
        self.openblas = self.installed("scipy_openblas32/lib/*.so")

    def peer(self, program, kind):
        return os.path.join(self.args.folder, kind, program)

    def installed(self, pattern):
        return glob.glob(os.path.join(self.args.folder, "venv/lib/python*/site-packages", pattern))[:1]

    def say(self, text):
        print(f"{datetime.datetime.now():%H:%M:%S} {text}", file=sys.stderr, flush=True)

    def pairs(self, words, ours, theirs, count):
        """Runs both in turn. Each run gives {(test, unit): value}. A test that both give becomes a line of the
        table."""
        runs = [(ours(), theirs()) for _ in range(count)]
        for test, unit in runs[0][0]:
            if (test, unit) in runs[0][1]:
                self.put(words + [test], unit, *zip(*((a[test, unit], b[test, unit]) for a, b in runs)))

    def put(self, words, unit, ours, theirs):
        figures = figure(ours, theirs, unit, self.args.max_spread)
        self.lines.append(line(words, unit, figures))
        self.say(self.lines[-1])
        self.verdicts.append((figures[5].split(":")[0], ", ".join(words)))

    # ------------------------------------------------------------------------------------------------------- llama.cpp

    def options(self, model, kv, prompt, new, depth):
        return ("-m", model, "-t", self.args.threads, "-p", prompt, "-n", new, "-d", depth, *kv, "-o", "json")

    def forerun(self, model, kv, prompt, new, depth=0, rows=(0,)):
        return Run(self.args.forerun, "bench", "model", "--rows", ",".join(map(str, rows)), "--spec-type", "none",
                   "--quiet", "-r", 5 if any(rows) else 1, *self.options(model, kv, prompt, new, depth))

    def llama_bench(self, kind, model, kv, prompt, new, depth=0):
        run = Run(self.peer("llama-bench", kind), "-r", 1, *self.options(model, kv, prompt, new, depth))
        self.versions["llama.cpp"] = f"{run.rows[0]['build_commit']}, by llama-bench"
        return run

    def beside_llama(self, model, depth):
        kv = ("-ctk", "f16", "-ctv", "f16")
        name, count = os.path.basename(model).removesuffix(".gguf"), self.args.pairs

        def speed(run):
            return {**rates(run.rows), ("peak memory", "MB"): run.bytes / 1e6}

        def start(run):
            return {("start", "s"): run.seconds}

        for kind in self.builds:
            def theirs(*what, kind=kind):
                return self.llama_bench(kind, model, kv, *what)

            words = [name, "llama.cpp" if kind == "bin" else "llama.cpp, AMX"]
            self.pairs(words, lambda: speed(self.forerun(model, kv, 512, 128)), lambda: speed(theirs(512, 128)), count)
            self.pairs(words, lambda: start(self.forerun(model, kv, 0, 1)), lambda: start(theirs(0, 1)), 2 * count)
            if depth:
                self.pairs(words, lambda: rates(self.forerun(model, kv, 0, 128, 4096).rows),
                           lambda: rates(theirs(0, 128, 4096).rows), count)
            self.pairs(words, lambda: row_times(self.forerun(model, kv, 0, 0, CONTEXT, ROWS).rows),
                       lambda: row_times(Run(self.peer("peer-rows", kind), model, self.args.threads, CONTEXT,
                                             ROW_TIMINGS, *ROWS).rows), count)

    def model(self, shape, kind):
        path = os.path.join(self.args.folder, "models", f"{shape}-{kind}.gguf")
        if not os.path.exists(path):
            self.say(f"writing {path}")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            subprocess.run([self.args.forerun, "synth", "--shape", shape, "--type", kind, path], check=True)
        return path

    # -------------------------------------------------------------------------------------------- PyTorch and OpenBLAS

    def beside_torch(self):
        folder = os.path.join(self.args.folder, "models", "gemma4-1b-bf16")
        if not os.path.exists(os.path.join(folder, "model.safetensors")):
            self.say(f"writing {folder}")
            subprocess.run([self.python, f"{HERE}/peer_torch.py", "make", folder], check=True,
                           stderr=subprocess.DEVNULL)
        torch = TorchDecode(self.python, folder, self.args.threads, 128)
        self.versions["PyTorch"] = f"{torch.versions['torch']}, transformers {torch.versions['transformers']}, eager"
        self.pairs(["gemma4-1b-bf16, safetensors", "PyTorch"],
                   lambda: rates(self.forerun(folder, (), 0, 128).rows), torch.rates, self.args.pairs)
        torch.close()

    def beside_blas(self):
        """Runs bench_blas, which itself runs both in turn, on all cores."""
        rows = Run(os.path.join(os.path.dirname(self.args.forerun), "bench", "bench_blas"), "-o", "json",
                   *self.openblas).rows
        self.versions["OpenBLAS"] = f"{rows[0]['openblas'].split()[1]}, kernels of {rows[0]['openblas_core']}"
        for row in rows:
            self.put(["float32", "OpenBLAS", f"{row['rows']} x {row['cols']} x {row['features']}"], "GFLOP/s",
                     row["samples_gflops"], row["samples_gflops_blas"])

    # ---------------------------------------------------------------------------------------------------------- all

    def machine(self):
        """Measures the machine, and gives facts as (name, value)."""
        self.say("machine")
        rows = Run(self.args.forerun, "bench", "machine", "-t", self.args.threads, "-o", "json").rows
        read = best(rows, "memory", "gb_per_s", n_threads=self.args.threads)
        dot = best(rows, "peaks", "gmac_per_s", operation="int8")
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        commit = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip()
        return [("processor", rows[0]["cpu_info"]), ("cores, threads", f"{rows[0]['cores']}, {self.args.threads}"),
                ("memory", f"{total / 2**30:.0f} GiB"),
                ("reads", f"{read:.1f} GB/s" if read else "not told: it spread too much"),
                ("int8 dot products", f"{dot:.0f} GMAC/s" if dot else "not told: they spread too much"),
                ("system", rows[0]["os"]), ("forerun", f"{rows[0]['version']}, {commit}, {rows[0]['compiler']}")]

    def models(self):
        """Gives the files to run beside llama.cpp, each with a flag: it is also run after 4096 ids."""
        args = self.args
        if args.model:
            return [(path, args.full) for path in args.model]
        usual = [(shape, kind) for shape in SHAPES for kind in TYPES] if args.full else USUAL
        return [(self.model(*one), args.full or one == USUAL[0]) for one in usual + [FLOAT]]

    def measure(self):
        if "llama.cpp" in self.args.peers and self.builds:
            for model, depth in self.models():
                self.beside_llama(model, depth)
        if "PyTorch" in self.args.peers and self.torch:
            self.beside_torch()
        if "OpenBLAS" in self.args.peers and self.openblas:
            self.beside_blas()

    def write(self, out, facts, minutes):
        def of(verdict):
            return [words for found, words in self.verdicts if found == verdict]

        facts = facts + [(peer, self.versions.get(peer, "not run")) for peer in PEERS]
        head = "| {} | {} | {} | {} | {} | {} | {} | {} | {} |"
        command = " ".join(["bench/peers/results.py"] + [word for word in sys.argv[1:] if word.startswith("--full")])
        print(f"# forerun beside its peers\n\n"
              f"Written by `{command}` on {datetime.date.today()} in {minutes:.0f} minutes, {self.args.pairs} pairs of "
              "runs in turn; not to be edited.\n\n"
              f"| | |\n| --- | --- |", *(f"| {name} | {value} |" for name, value in facts), "",
              f"Of {len(self.verdicts)} rows forerun is ahead in {len(of('ahead'))}, even in {len(of('even'))} and "
              f"behind in {len(of('behind'))}; not told: {len(of('not told'))}.", sep="\n", file=out)
        if of("behind"):
            print("\nIt loses in:\n", *(f"- {words}" for words in of("behind")), sep="\n", file=out)
        print("\n" + head.format("model", "peer", "test", "unit", "forerun", "peer's", "ratio", "lowest - highest", ""),
              head.format(*["---"] * 9), *self.lines, sep="\n", file=out)
        print(NOTES.format(timings=ROW_TIMINGS, context=CONTEXT, spread=self.args.max_spread), file=out)


NOTES = """
- Ratio: of speeds, or of the peer's time or memory over forerun's; above 1 forerun is better. Even: 1 lies between the
  ratio's quartiles. Not told: they lie more than {spread:g}% apart.
- pp512: a prompt of 512 ids; tg128: decode of 128 ids from an empty context, or @ d4096 behind 4096 ids. Both engines
  time themselves, warm, without loading. Keys and values are cached as float16, beside PyTorch as each has them.
- T(K): one forward of K ids with the logits of all, as K - 1 drafts are verified, behind {context} ids; the middle of
  {timings} in each process. llama-bench has no such test (its prompts ask for the last logits alone); peer_rows.c runs
  llama.cpp.
- start: a process that opens the file, which lies in the page cache, warms up and decodes one id, from start to end.
- peak memory: the most that the process of pp512 and tg128 held, mapped pages of the file with it.
- float32: products of activations [rows, columns] and weights [features, columns], rows x columns x features; pairs in
  one process. forerun's order of additions is fixed, so that the answer is; PyTorch multiplies BF16 activations,
  forerun float32 ones."""


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cores = len(os.sched_getaffinity(0))
    peers = ",".join(PEERS)
    parser.add_argument("forerun", nargs="?", help="the command: build/forerun")
    parser.add_argument("folder", nargs="?", help="of build.sh")
    parser.add_argument("out", nargs="?", help="file to write, such as bench/results/zen4-2026-11-22.md")
    parser.add_argument("--full", action="store_true", help="every shape, type and depth, 5 pairs (an hour and a half)")
    parser.add_argument("--pairs", type=int, help="of runs (default 3)")
    parser.add_argument("--threads", type=int, default=cores,
                        help="of each engine (default: all cores; OpenBLAS always has all)")
    parser.add_argument("--max-spread", type=float, default=20, help="per cent (default 20)")
    parser.add_argument("--peers", default=peers, help=f"those to run beside (default {peers})")
    parser.add_argument("--model", action="append", help="a GGUF file instead of the usual ones; may be repeated")
    parser.add_argument("--self-test", action="store_true", help="check the arithmetic of the table, and nothing else")
    args = parser.parse_args()
    if not args.self_test and not args.folder:
        parser.error("forerun and the folder of build.sh are needed")
    args.pairs = args.pairs or (5 if args.full else 3)
    args.peers = args.peers.split(",")
    return args


def main():
    args = read_arguments()
    if args.self_test:
        import doctest
        failed, tried = doctest.testmod()
        print(f"{tried} examples, {failed} failed")
        sys.exit(failed > 0)
    begin, (busy, own) = time.monotonic(), busy_seconds()
    results = Results(args)
    facts = results.machine()
    results.measure()
    seconds, (busy_then, own_then) = time.monotonic() - begin, busy_seconds()
    others = max(0, (busy_then - busy - own_then + own) / (seconds * os.cpu_count()))
    facts.append(("other programs", f"took {100 * others:.0f}% of the processors meanwhile"))
    if not args.out:
        return results.write(sys.stdout, facts, seconds / 60)
    with open(args.out, "w", encoding="utf-8") as out:
        results.write(out, facts, seconds / 60)


if __name__ == "__main__":
    main()
