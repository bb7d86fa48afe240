"""Makes prompts. A target's answers to them are the training data of its drafter. Forms of tasks are combined with
topics; all were written for this purpose.

In: a number of prompts, a seed, a part. Out, on standard output: lines for `forerun batch` and `forerun features`.
Half of them are greedy, half are drawn at a temperature. The parts `train` and `held-out` have no topic in common.

    prompts.py --part train --count 1000 > prompts.jsonl
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


def lines(part, count, seed):
    held_out = set(random.Random(1).sample(TOPICS, len(TOPICS) // 8))
    topics = [t for t in TOPICS if (t in held_out) == (part == "held-out")]
    pairs = [(form, topic) for form in FORMS for topic in topics]
    draw = random.Random(seed)
    draw.shuffle(pairs)
    for i, (form, topic) in enumerate(pairs[:count]):
        line = {"id": i,
                "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": form.format(topic)}]}
        if i % 2:
            line |= {"temp": 0.7, "seed": seed * 100000 + i}
        yield line


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="prompts to learn from")
    parser.add_argument("--part", choices=["train", "held-out"], default="train")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for line in lines(options.part, options.count, options.seed):
        print(json.dumps(line))
