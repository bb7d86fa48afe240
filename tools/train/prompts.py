"""Makes prompts. A target's answers to them are the training data of its drafter. Forms of tasks are combined with
topics; all were written for this purpose.

In: a number of prompts, a seed, a part, and what they are about, everyday topics or code. Out, on standard output:
lines for `forerun batch` and `forerun features`.
Half of them are greedy, half are drawn at a temperature. The parts `train` and `held-out` have no topic in common.

    prompts.py --part train --count 1000 > prompts.jsonl
    prompts.py --about code --count 1000 > code.jsonl
"""
import argparse
import json
import random

SYSTEM = "You are a helpful assistant."

TOPICS = """volcanoes|tides|photosynthesis|the water cycle|black holes|earthquakes|rainbows|vaccines|antibiotics|DNA|
inflation|interest rates|supply and demand|taxes|budgeting|insurance|the stock market|mortgages|savings|
small businesses|
bread|soup|coffee|tea|cheese|pasta|a vegetable curry|pancakes|salads|chocolate|breakfast|leftovers|
gardening|roses|compost|tomatoes|house plants|lawns|bees|birds|dogs|cats|horses|goldfish|wolves|whales|
running|swimming|cycling|yoga|chess|football|tennis|hiking|camping|fishing|sleep|stress|back pain|
Rome|the Silk Road|the Vikings|castles|the printing press|railways|steam engines|the moon landing|pirates|knights|
painting|photography|the piano|the guitar|poetry|films|theatre|dancing|drawing|museums|novels|
databases|recursion|sorting|version control|linked lists|binary search|passwords|encryption|web servers|unit tests|
regular expressions|caching|operating systems|compilers|spreadsheets|email|wireless networks|robots|batteries|bridges|
friendship|public speaking|job interviews|teamwork|time management|learning a language|moving to a new city|
teaching children|libraries|markets|trains|ships|bicycles|clocks|maps|windmills|lighthouses|deserts|glaciers|
forests|rivers|islands|winter|spring|birthdays|weddings|holidays""".replace("\n", "").split("|")

FORMS = """Explain {} to a beginner in plain words.|What should everybody know about {}?|
Write a short story about {}.|
Give me five tips about {}.|Write a poem about {}.|Write a short email to a friend about {}.|
What are common mistakes people make with {}?|Tell me an interesting fact about {} and explain it.|
Write a dialogue between two people who talk about {}.|Summarize the most important ideas about {}.|
List three advantages and three disadvantages of {}.|How would you explain {} to a child of eight?|
Write a step by step guide for somebody who is new to {}.|What is the history of {}?|
Compare two different opinions about {}.|Write an introduction for an article about {}.|
I would like to learn more about {}. Where do I begin?|Make a list of ten questions about {} for a quiz.|
Give me a JSON object that describes {}, with the fields name, description and tags.|
Write a Python program that stores notes about {} and prints them.|
Write a Python function that counts words about {} in a text, with a docstring and an example.|
Describe a day in the life of somebody whose work is about {}.|Why do people care about {}?|
Write a product description about {}.|What do experts disagree about when it comes to {}?|
Help me plan an evening about {}.|Invent a character who loves {} and tell me about them.|
Write a letter that asks for information about {}.|Make a table with two columns about {}.|
What would happen if there were no {}?""".replace("\n", "").split("|")

TASKS = """reverse a string|check whether a number is prime|sort a list of records by two keys|merge two sorted lists|
find the longest common prefix of strings|count the words of a file|parse a CSV file|read a JSON configuration|
compute the greatest common divisor|find all permutations of a list|search a sorted array|detect a cycle in a graph|
find the shortest path in a maze|balance brackets in an expression|evaluate an arithmetic expression|
convert Roman numerals|validate an email address|format a date|compute the day of the week|remove duplicates|
flatten nested lists|group items by a key|compute a moving average|multiply two matrices|transpose a matrix|
implement a stack with a minimum|implement a queue of two stacks|implement a least recently used cache|
implement a binary search tree|implement a priority queue|implement a linked list|implement a trie|
split text into lines of a width|count the lines of all files in a folder|rename many files|watch a folder for changes|
download a file over HTTP|call a REST service and handle errors|retry a request with growing pauses|
write a small web server|handle a form with three fields|query a database of customers|join two tables|
insert rows in a transaction|hash a password|make a random token|encode bytes as base64|compress a string|
find the most frequent word|check whether two words are anagrams|find the second largest number|
generate Fibonacci numbers|compute a factorial without recursion|solve the towers of Hanoi|place eight queens|
simulate the game of life|roll dice and print a histogram|draw a triangle of stars|play a guessing game|
run tasks in parallel threads|limit the rate of calls|log messages with a time stamp|parse command line options|
read numbers from standard input|measure the time of a function|memoize a function|compare two versions|
convert temperatures|compute a loan's monthly payment|keep a to-do list|model a bank account|model a shopping cart|
rotate an array|find a subarray with the largest sum|count the bits of an integer|swap two variables|
read a large file in chunks|escape HTML|render a template|paginate results|validate a date|tokenize a sentence
""".replace("\n", "").split("|")

LANGUAGES = ["Python", "JavaScript", "TypeScript", "C", "C++", "Java", "Go", "Rust", "SQL", "Bash"]

CODE_FORMS = """Write a {1} function to {0}.|How do I {0} in {1}?|Write a {1} program to {0}, with comments.|
Show me idiomatic {1} code to {0}, and explain it line by line.|Write {1} code to {0}, and unit tests for it.|
What mistakes do people make when they {0} in {1}? Show the right way.|Write a {1} class that can {0}.|
Compare two ways to {0} in {1}, and say which is faster.|Only give me the code: {0} in {1}.
""".replace("\n", "").split("|")


def choose(things, part):
    """Returns the things of a part. One of eight is held out."""
    held_out = set(random.Random(1).sample(things, len(things) // 8))
    return [thing for thing in things if (thing in held_out) == (part == "held-out")]


def lines(part, count, seed, about="everyday"):
    if about == "code":
        requests = [form.format(task, language) for form in CODE_FORMS for task in choose(TASKS, part)
                    for language in LANGUAGES]
    else:
        requests = [form.format(topic) for form in FORMS for topic in choose(TOPICS, part)]
    draw = random.Random(seed)
    draw.shuffle(requests)
    for i, request in enumerate(requests[:count]):
        line = {"id": i, "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": request}]}
        if i % 2:
            line |= {"temp": 0.7, "seed": seed * 100000 + i}
        yield line


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="prompts to learn from")
    parser.add_argument("--part", choices=["train", "held-out"], default="train")
    parser.add_argument("--about", choices=["everyday", "code"], default="everyday")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for line in lines(options.part, options.count, options.seed, options.about):
        print(json.dumps(line))
