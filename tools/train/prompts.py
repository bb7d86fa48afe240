"""Makes prompts. A target's answers to them are the training data of its drafter. Forms of tasks are combined with
topics, chores, tasks of programming or short texts to edit; all were written for this purpose.

In: a number of prompts, a seed, a part, and what they are about: everyday topics, code or editing. Out, on standard
output: lines for `forerun batch` and `forerun features`.
Half of them are greedy, half are drawn at a temperature. Half have a system turn, because a model's template may add
its own where there is none. The parts `train` and `held-out` have no topic in common. Each list is divided by itself,
so that what was held out from a drafter stays held out when lists are added.

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

MORE_TOPICS = """gravity|magnets|electricity|sound|light|heat|atoms|chemical reactions|acids and bases|
the periodic table|evolution|cells|viruses|bacteria|the immune system|the heart|the brain|the lungs|digestion|bones|
muscles|eyes|teeth|vitamins|proteins|sugar|salt|water|alcohol|allergies|headaches|colds|fever|sunburn|first aid|
blood pressure|diabetes|exercise|stretching|walking|meditation|breathing|posture|habits|motivation|happiness|anger|
grief|shyness|loneliness|memory|attention|dreams|intelligence|creativity|curiosity|decision making|negotiation|
leadership|criticism|apologies|gossip|neighbours|roommates|babies|teenagers|grandparents|parenting|divorce|
retirement|pets|puppies|parrots|rabbits|hamsters|snakes|turtles|frogs|spiders|ants|butterflies|mosquitoes|sharks|
dolphins|penguins|owls|eagles|elephants|lions|bears|foxes|deer|squirrels|dinosaurs|fossils|mammoths|mushrooms|ferns|
cactuses|sunflowers|tulips|orchids|oaks|palm trees|herbs|apples|bananas|lemons|strawberries|grapes|olives|potatoes|
carrots|onions|garlic|beans|rice|noodles|eggs|butter|yogurt|honey|chicken soup|sandwiches|pizza|sushi|curry|
barbecue|cakes|cookies|ice cream|smoothies|juice|wine|beer|spices|knives|ovens|frying pans|kitchens|bathrooms|
bedrooms|furniture|curtains|carpets|paint|lamps|mirrors|plumbing|roofs|heating|insulation|solar panels|wind power|
nuclear power|oil|coal|recycling|plastic|air pollution|climate change|floods|droughts|hurricanes|tornadoes|
avalanches|thunderstorms|snow|fog|clouds|the ozone layer|coral reefs|rainforests|savannas|caves|mountains|
waterfalls|lakes|oceans|the Sun|the Moon|Mars|Jupiter|Saturn|comets|meteors|galaxies|telescopes|satellites|rockets|
space stations|time zones|calendars|leap years|prime numbers|fractions|percentages|probability|statistics|averages|
geometry|triangles|circles|the number pi|algebra|logic|puzzles|card games|board games|video games|crosswords|
magic tricks|juggling|knitting|sewing|pottery|woodworking|origami|calligraphy|collecting stamps|scrapbooks|blogs|
podcasts|newspapers|magazines|comic books|fairy tales|myths|legends|detective stories|science fiction|biographies|
diaries|speeches|debates|jokes|proverbs|metaphors|grammar|punctuation|spelling|essays|handwriting|dictionaries|
translation|sign language|accents|Latin|Spanish|French|Japanese|opera|jazz|rock music|folk songs|the violin|
the drums|the flute|choirs|orchestras|ballet|sculpture|architecture|fashion|shoes|hats|jewellery|perfume|haircuts|
tattoos|ancient Egypt|ancient Greece|the Roman army|the Middle Ages|the Renaissance|the Black Death|
the French Revolution|the Industrial Revolution|the First World War|the Cold War|the Olympic Games|
the Great Wall of China|the pyramids|Paris|London|New York|Tokyo|Africa|India|Brazil|Australia|Antarctica|
the Amazon|the Nile|the Alps|the Sahara|samurai|explorers|kings and queens|democracy|elections|constitutions|courts|
police work|human rights|money|banks|credit cards|loans|pensions|stocks and bonds|trade|advertising|branding|
customer service|meetings|resumes|salaries|remote work|freelancing|unions|strikes|entrepreneurs|inventions|patents|
factories|farms|cows|sheep|chickens|wheat|corn|cotton|silk|wool|paper|glass|steel|gold|diamonds|concrete|wood|
tunnels|dams|canals|ports|airports|airplanes|helicopters|balloons|submarines|sailing|motorcycles|electric cars|
traffic lights|buses|subways|road trips|packing|hotels|passports|souvenirs|beaches|skiing|skating|surfing|climbing|
rowing|basketball|volleyball|baseball|golf|boxing|judo|archery|marathons|referees|coaches|smartphones|televisions|
radios|cameras|printers|keyboards|computer mice|hard drives|processors|video calls|social media|search engines|
online shopping|spam|privacy|backups|cloud storage|artificial intelligence|chatbots|virtual reality|drones|
3D printers|barcodes|locks|alarm clocks|elevators|umbrellas|scissors|pencils|books|schools|homework|exams|
universities|teachers|kindergartens|hospitals|nurses|doctors|dentists|firefighters|pilots|chefs|waiters|farmers|
lawyers|judges|engineers|scientists|actors|clowns|magicians|astronauts|Christmas|Halloween|New Year|Easter|gifts|
parties|picnics|fireworks|parades|festivals|circuses|zoos|aquariums|parks|playgrounds|swimming pools|supermarkets|
bakeries|restaurants|cafes|post offices|flea markets|secondhand clothes|volunteering|charity|kindness|honesty|
patience|courage|trust|gratitude|minimalism|luck|time|silence|colours|shadows|bubbles|kites|swings|snowmen|
sandcastles|tree houses|pocket money|lost keys|missed trains""".replace("\n", "").split("|")

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

MORE_FORMS = """Tell me about {}.|What is special about {}?|Can you explain {} in one paragraph?|
What is the best way to learn about {}?|Write a funny story about {}.|Write a news report about {}.|
Write a haiku about {}.|Write an essay of three paragraphs about {}.|Why are there so many opinions about {}?|
How did people deal with {} in the past?|What will {} be like in fifty years?|
What are some good questions to ask an expert on {}?|Give me a definition of {}.|
I have to give a talk about {}. Help me with an outline.|What are the most common myths about {}?|
My friend knows nothing about {}. What should I say first?|Describe {} as if you saw it for the first time.|
What is the difference between good and bad advice about {}?|
List some words that have to do with {}, with their meanings.|Write a blog post about {} with headings.|
Pros and cons of {}, please.|I am worried about {}. What should I do?|
Suggest a title and a first sentence for a book about {}.|Write a song about {}.|
Which facts about {} are easy to remember?|Explain the science of {}.|How much time and money does one need for {}?|
Write a conversation between a teacher and a student about {}.|Give three examples that have to do with {}.|
Write a thank you note that mentions {}.|What should I avoid when it comes to {}?|
Quiz me about {}, and give the answers.|hi, can you help me with something about {}?|
Answer in two sentences: why does {} matter?""".replace("\n", "").split("|")

CHORES = """remove a stain from a shirt|boil an egg|cook rice|bake bread without yeast|clean a window|
fix a leaking tap|change a flat tire|iron a shirt|tie a tie|wrap a gift|plan a weekly menu|save money on groceries|
write a cover letter|ask for a raise|quit a job politely|say no to a friend|make new friends in a new city|
fall asleep faster|wake up early|stop procrastinating|prepare for an exam|remember names|read more books|
learn twenty words a day|start running|lose a little weight|build a bookshelf|paint a room|hang a picture|
unclog a drain|grow tomatoes on a balcony|keep a plant alive in winter|train a puppy|introduce two cats|
pack a suitcase|plan a trip on a small budget|find a cheap flight|choose a hotel|read a map|take better photos|
choose a laptop|speed up a slow computer|make a strong password|back up my files|clean a keyboard|set up a printer|
organize my email|write a complaint|write a wedding speech|plan a birthday party|host a dinner for six people|
make coffee without a machine|sharpen a knife|cut an onion without tears|freeze vegetables|reduce food waste|
sort my clothes|wash a wool sweater|remove chewing gum|get rid of ants|keep a house cool in summer|
save energy at home|compare two offers|make a budget|pay back a debt|split a bill fairly|negotiate a price|
teach a child to read|help with homework|calm a crying baby|explain death to a child|apologize to a friend|
give honest feedback|lead a meeting|write a summary|take notes|give a presentation without fear|
answer difficult questions in an interview|choose a career|work from home|deal with a loud neighbour|
find a lost phone|treat a small burn|stop a nosebleed|relieve a sore neck|drink more water|quit smoking|
start meditating|keep a diary|draw a face|learn the guitar|sing in tune|write a poem|write a short story|
name a character|build a campfire|put up a tent|catch a fish|swim faster|ride a bicycle in traffic|drive in snow|
jump start a car|park between two cars|sell old furniture|move to another apartment|find a good doctor
""".replace("\n", "").split("|")

CHORE_FORMS = """How do I {}?|What is the easiest way to {}?|Give me a step by step plan to {}.|
I want to {}. Any advice?|What do I need to {}?|Give me five tips to {}.|What can go wrong when I try to {}?|
Is it hard to {}?|Write a checklist for somebody who wants to {}.|I tried to {} but it did not work. What now?|
Write a short message to a friend who wants to {}.|Explain to a child how to {}.""".replace("\n", "").split("|")

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

MORE_TASKS = """sum the digits of a number|check whether a string is a palindrome|count the vowels of a text|
convert a number to binary|convert hexadecimal to decimal|capitalize each word|remove white space|
replace words in a file|compute the area of a triangle|compute the distance of two points|find the median of a list|
find the mode of a list|compute a standard deviation|round to two decimals|check for a leap year|add days to a date|
convert seconds to hours|parse a URL|build a query string|send an email|read environment variables|write a CSV file|
pretty print JSON|merge two dictionaries|invert a dictionary|sort a dictionary by value|zip two lists|chunk a list|
shuffle a list|pick a random item|find duplicates in a list|intersect two sets|rotate a matrix|
spiral through a matrix|solve a quadratic equation|compute prime factors|list the primes below a limit|
compute a power quickly|implement bubble sort|implement quicksort|implement merge sort|implement insertion sort|
implement heap sort|search a tree in depth|search a graph in breadth|find connected components|
sort a graph topologically|compute the edit distance of two words|find the longest increasing subsequence|
solve the knapsack problem|make change for coins|generate all subsets|generate balanced brackets|solve a sudoku|
play tic-tac-toe|play rock, paper, scissors|simulate a bank queue|model a library of books|model a parking lot|
model a deck of cards|model employees with managers|model shapes with areas|define an interface for storage|
use inheritance for animals|overload an operator|raise and catch an error|write a decorator that logs calls|
write a generator of squares|write a context manager|read a file line by line|copy a file|delete old files|
list a folder|zip a folder|compute a checksum|check disk space|kill a process that hangs|schedule a job|
open a socket|write a chat client|scrape a table from a page|cache the results of calls|debounce an event|
validate a password|validate a phone number|mask a credit card number|make a slug from a title|truncate a text|
wrap a promise with a timeout|fetch data and show a list|sort a table by clicking|toggle a dark theme|
make a countdown|draw a bar chart|resize an image|count words with a map|create a table of users|
select the top ten rows|update a column|delete duplicate rows|group sales by month|write a recursive query|
add an index|paginate a query""".replace("\n", "").split("|")

LANGUAGES = ["Python", "JavaScript", "TypeScript", "C", "C++", "Java", "Go", "Rust", "SQL", "Bash"]

CODE_FORMS = """Write a {1} function to {0}.|How do I {0} in {1}?|Write a {1} program to {0}, with comments.|
Show me idiomatic {1} code to {0}, and explain it line by line.|Write {1} code to {0}, and unit tests for it.|
What mistakes do people make when they {0} in {1}? Show the right way.|Write a {1} class that can {0}.|
Compare two ways to {0} in {1}, and say which is faster.|Only give me the code: {0} in {1}.
""".replace("\n", "").split("|")


MORE_CODE_FORMS = """{1}: {0}|Please {0} in {1}. Keep it short.|Explain how to {0} in {1} to a beginner.|
Write {1} code to {0}. Handle errors well.|What is the complexity of {1} code that can {0}? Show it.|
Write a {1} module to {0}, with documentation.|Give me an example in {1}: {0}. Then improve it.|
I have to {0} in {1}, but my code gives a wrong result. What should I check?""".replace("\n", "").split("|")

PASSAGES = """The meeting was moved from monday to thursday because the room are not free and many of us was ill.|
Dear sir, I want my money back, the lamp I bought is broken and nobody answer my calls since two weeks.|
Our shop opens at nine. We sell bread, cakes and coffee. On Sundays we are closed. Come and visit us.|
The old bridge over the river was built in 1874. It carried trains until 1961, and now people walk and cycle on it.|
I think that maybe we should perhaps consider to start a bit earlier, if it is not a problem for anyone of you.|
Cats sleep for about fifteen hours a day. They hunt at dawn and at dusk, when their prey is active.|
Yesterday I go to the market and buyed three apple, two pear and a bread. It were very cheap.|
The new phone has a large screen, a battery that lasts two days, and a camera that sees well at night.|
We regret to inform you that the train at 8.15 does not run today. Please take the bus from platform 2.|
Rain fell on the city all night. In the morning the streets shone, and the children jumped over the puddles.|
To make the soup, cut the carrots, fry the onions, add a litre of water and let it cook for half an hour.|
Anna has two brothers, Ben and Carl. Ben is a nurse and lives in Rome. Carl studies law in Oslo.|
The results was better as expected: sales grew by 12 percent, costs fell by 3 percent, and profit doubled.|
hey can u send me the report asap?? i need it for tmrw and my boss is not happy lol|
Water boils at 100 degrees at sea level, but on a high mountain it boils at a lower temperature.|
My flat has two rooms, a small kitchen and a balcony that faces south. The rent is 700 a month.|
The team lost the first three games, but then won eleven in a row and reached the final in June.|
It is important to note that, in order to open the box, one has to press on the button which is at the side.|
She opened the door slowly. The room was dark, and something in the corner was breathing.|
Thank you for your order. It will be sent within two days. You can return it within thirty days.|
There going to they're house over their, and its to late too call them, but your welcome to try.|
The library lends books for four weeks. Films are lent for one week. A late book costs ten cents a day.|
In 2019 the village had 412 people, 3 shops and a school. Today it has 289 people, one shop and no school.|
A good password is long, is used only once, and is not a word. A password manager remembers it for you.
""".replace("\n", "").split("|")

EDITS = """Correct the mistakes in this text: {}|Rewrite this text so that it is more formal: {}|
Make this text shorter: {}|Summarize this in one sentence: {}|Rewrite this text for children: {}|
Turn this text into bullet points: {}|Make this sound friendlier: {}|Continue this text: {}|
Write three questions about this text: {}|Give this text a title and explain your choice: {}|
Write this as a JSON object: {}|Which facts does this text state? {}|Rewrite this in the past tense: {}|
Rewrite this as an email: {}|Expand this text to two paragraphs: {}|
Repeat this text, and mark the important words in bold: {}|Explain what this text means: {}|
What is the tone of this text, and how could it be improved? {}""".replace("\n", "").split("|")


def choose(things, part):
    """Returns the things of a part. One of eight is held out."""
    held_out = set(random.Random(1).sample(things, len(things) // 8))
    return [thing for thing in things if (thing in held_out) == (part == "held-out")]


def lines(part, count, seed, about="everyday"):
    if about == "code":
        requests = [form.format(task, language) for form in CODE_FORMS + MORE_CODE_FORMS
                    for tasks in (TASKS, MORE_TASKS) for task in choose(tasks, part) for language in LANGUAGES]
    elif about == "editing":
        requests = [form.format(passage) for form in EDITS for passage in choose(PASSAGES, part)]
    else:
        requests = [form.format(topic) for form in FORMS + MORE_FORMS for topics in (TOPICS, MORE_TOPICS)
                    for topic in choose(topics, part)]
        requests += [form.format(chore) for form in CHORE_FORMS for chore in choose(CHORES, part)]
    draw = random.Random(seed)
    draw.shuffle(requests)
    for i, request in enumerate(requests[:count]):
        messages = [{"role": "user", "content": request}]
        if i % 4 < 2:
            messages.insert(0, {"role": "system", "content": SYSTEM})
        line = {"id": i, "messages": messages}
        if i % 2:
            line |= {"temp": 0.7, "seed": seed * 100000 + i}
        yield line


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="prompts to learn from")
    parser.add_argument("--part", choices=["train", "held-out"], default="train")
    parser.add_argument("--about", choices=["everyday", "code", "editing"], default="everyday")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for line in lines(options.part, options.count, options.seed, options.about):
        print(json.dumps(line))
