"""Text for the extra speakers: sentences made by a seeded generator, so that nobody else's text is needed.

Half of them are everyday speech with the punctuation that decides intonation, the other half are random words of the
CMU dictionary: nonsense, but they bring phone neighbourhoods that a few hundred templates never would.
"""

import random
import re
from pathlib import Path

from sentences import evaluation_sentences, normalised

DICTIONARY = Path("/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict")

# Slots: `{name}` in a template is replaced by a random entry of the list of that name, recursively.
SLOTS: dict[str, list[str]] = {
    "person": """woman|man|child|doctor|teacher|driver|manager|neighbour|cook|singer|lawyer|painter|farmer|nurse|judge
        |waiter|student|guest|customer|captain|uncle|aunt|sister|brother|daughter|son|cousin|boss|girl|boy""".split("|"),
    "name": "Anna|Tom|Julia|Peter|Mary|George|Helen|David|Laura|Sam|Rose|Victor|Emma|Oscar|Ruth|Hugo|Zoe|Joy".split("|"),
    "thing": """table|chair|window|letter|picture|bottle|key|ticket|suitcase|phone|lamp|mirror|jacket|basket|guitar|camera
        |blanket|pencil|hammer|bicycle|boat|engine|cushion|jewel|vase|measure|toy|coin|shovel|thermos|watch|judgment|choice
        |bath|leather belt|feather|mouth organ|rouge|badge|bridge|treasure|map|pullover|hood|wool scarf|newspaper""".split("|"),
    "place": """kitchen|garden|station|harbour|market|hospital|library|office|church|forest|village|valley|beach|theatre
        |bakery|airport|school|museum|cellar|attic|yard|square|bank|stadium|zoo|hallway|shop|town hall|youth hostel""".split("|"),
    "adjective": """old|new|small|large|bright|quiet|heavy|cheap|lovely|broken|yellow|purple|brown|clean|dirty|narrow|wide
        |gentle|strange|famous|curious|thin|smooth|rough|sour|huge|foolish|loyal|cautious|usual|clever|loud|tiny""".split("|"),
    "past": """saw|found|bought|painted|washed|carried|dropped|noticed|borrowed|moved|sold|repaired|lost|hid|watched
        |touched|measured|described|chose|enjoyed|loathed|kicked|caught|threw away|took home|asked about|looked for""".split("|"),
    "base": """see|find|buy|paint|wash|carry|drop|notice|borrow|move|sell|repair|lose|hide|watch|touch|measure|describe
        |choose|enjoy|catch|pull|push|join|give back|look after|show us|think about|pay for""".split("|"),
    "when": """yesterday|this morning|last night|on Tuesday|in the afternoon|at half past seven|after supper|before dawn
        |every evening|in the middle of July|during the storm|at the weekend|a year ago|just now|long ago|on Thursday""".split("|"),
    "where": """in the {place}|near the {place}|behind the {place}|next to the {adjective} {place}|by the river
        |across the street|at the {place}|under the {thing}|on top of the {thing}|outside|not far from here""".split("|"),
    "subject": """I|you|we|they|he|she|the {person}|my {person}|{name}|the {adjective} {person}|nobody|everyone
        |{name} and {name}|our {person}|your {person}|somebody|the other {person}""".split("|"),
    "object": """the {thing}|a {adjective} {thing}|my {thing}|the {adjective} {thing}|their {thing}|it|the {person}'s {thing}
        |this {thing}|another {thing}|his {adjective} {thing}|them|two of the {thing}s""".split("|"),
    "number": """one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen
        |seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|one hundred|twenty one
        |thirty four|fifty six|seventy eight|ninety nine|two hundred and five|one thousand|zero|half a million""".split("|"),
    "month": "January|February|March|April|May|June|July|August|September|October|November|December".split("|"),
    "day": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday".split("|"),
    "ordinal": "first|second|third|fourth|fifth|sixth|ninth|tenth|twelfth|twentieth|thirty first".split("|"),
    "fact": """{subject} {past} {object} {where}|{subject} {past} {object} {when}|the {thing} was {adjective}
        |it was {adjective} and {adjective}|the {person} will {base} {object}|{subject} could not {base} {object}
        |there was a {adjective} {thing} {where}|{subject} had to {base} {object} {when}""".split("|"),
    "because": "because|although|while|so|until|before|and|but|when|unless|since|as soon as".split("|"),
    "letter": list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
}

STATEMENTS = [
    "{fact}.", "{fact}.", "{fact}.", "{when}, {fact}.", "{fact} {because} {fact}.", "{fact}, {because} {fact}.",
    "If {fact}, {fact}.", "{fact}, {fact}, and {fact}.", "The {thing}, the {thing}, and the {thing} were {adjective}.",
    "We need {number} {thing}s, {number} {thing}s, and a {adjective} {thing}.",
    "It costs {number} dollars and {number} cents.", "The meeting is on {day}, {month} the {ordinal}, at {number} o'clock.",
    "Your number is {number}, {number}, {number}, {number}.", "There are {number} {adjective} {thing}s {where}.",
    "The {person} who {past} {object} {when} also {past} {object} {where} {because} {fact} {because} {fact}.",
    "{name} thinks that {fact} {because} {subject} wanted to {base} {object} with the {person} from the {place} {where}.",
    "Please {base} the {thing} {where}.", "Please do not {base} {object}, {because} {fact}.",
    "My name is {name}, and I am calling from the {place}.", "It is spelled {letter}, {letter}, {letter}, {letter}.",
    "However, {fact}.", "In other words, {fact}.", "I would rather {base} {object} than {base} {object}.",
]
QUESTIONS = [
    "Did {subject} {base} {object}?", "Can you {base} {object} {where}?", "Would you like to {base} {object} {when}?",
    "Is the {thing} {where}?", "Do you think that the {thing} is {adjective} or {adjective}?", "Where is the {thing}?",
    "Why did {subject} {base} {object}?", "Who {past} {object} {when}?", "How many {thing}s are there {where}?",
    "Are you sure that {fact}?", "What time does the {place} open on {day}?", "{fact}, isn't that right?",
    "Should I {base} it for you?", "Have you ever been to the {place}, {name}?", "Which {thing} is yours?",
]
EXCLAMATIONS = [
    "What a {adjective} {thing}!", "{fact}!", "Watch out, {name}!", "Please {base} the {thing}!", "How {adjective}!",
    "That is a {adjective} {thing}!", "I told you that {fact}!", "Look, there is the {person}!",
]
DIALOGUE = [
    "Thank you for calling. How can I help you today?", "Sure, I can do that for you. One moment, please.",
    "I'm sorry, I didn't catch that. Could you say it again?", "Your {thing} will arrive on {day}. Is that all right?",
    "Great! I've booked it for {number} people. Anything else?", "No problem. {fact}. Shall we go on?",
    "Okay, let me check. Yes, {fact}.", "Hi, {name}! It's good to hear from you.", "Well, {fact}. But {fact}.",
    "I understand. {fact}. Let me see what I can do.", "Yes, of course. The {thing} is {where}.",
    "Could you please tell me your name, and the {ordinal} letter of your street?", "{fact}. {fact}. {fact}.",
    "You're welcome, {name}. Have a {adjective} day!", "Right. So, you want to {base} {object}, is that correct?",
]
SHORT = """Yes.|No.|Hello.|Hello there.|Hi!|Good morning.|Good evening.|Goodbye.|Thanks a lot.|Thank you.|You're welcome.
    |Okay.|Sure.|Of course.|Not yet.|Maybe later.|Really?|Why not?|Who, me?|Come in!|Wait!|Stop!|Great!|I see.|I don't know.
    |One moment, please.|Excuse me.|Sorry.|Right.|Never mind.|All right.|Well done!|Good night.|See you soon.|No, thank you.
    |What?|Now?|Very good.|Let's go!|Over there.|It's fine.|Are you there?|Can you hear me?|I am.|Me too.|Go on.|Perfect!
    |Oh, no!|Absolutely.|Exactly.|Good idea.|Nice to meet you.|How are you?|Just a second.|Take care.|Yes, please.|Hm, perhaps.
    """.split("|")
GLUE = """the a of to in and with for on at by from is was are he she they we you it not his her that this my your has had
    will can would but or as if so than into up out who what which there""".split()


def fill(template: str, rng: random.Random) -> str:
    """Replaces every slot of a template, and begins it with a capital letter."""
    text = template
    while match := re.search(r"\{(\w+)\}", text):
        text = text[: match.start()] + rng.choice(SLOTS[match[1]]).strip() + text[match.end() :]
    text = re.sub(r"\ba ((?:[aeio]|u[^s])\w*)", r"an \1", text)
    return re.sub(r"(^|[.?!] )([a-z])", lambda m: m[1] + m[2].upper(), text)


def dictionary_words() -> list[str]:
    """The words of the dictionary that are plain letters."""
    lines = DICTIONARY.read_text(encoding="utf-8").splitlines()
    return sorted({word for line in lines if re.fullmatch(r"[a-z]{2,12}", word := line.split()[0])})


def word_salad(words: list[str], rng: random.Random) -> str:
    """Random words with function words between them: 4 to 10 rare words, now and then a comma."""
    chosen: list[str] = []
    count = rng.randint(3, 9)
    for position in range(count):
        if rng.random() < 0.45:
            chosen.append(rng.choice(GLUE))
        chosen.append(rng.choice(words) + ("," if position < count - 1 and rng.random() < 0.08 else ""))
    text = " ".join(chosen)
    return text[0].upper() + text[1:] + rng.choices(".?!", weights=[6, 2, 1])[0]


def training_sentences(seed: int = 20) -> list[str]:
    """About 2,200 distinct sentences, in random order; never one that the evaluation uses."""
    rng = random.Random(seed)
    forbidden = {normalised(text) for sentence in evaluation_sentences() for text in (sentence.text, *sentence.words)}
    sentences = {phrase for text in SHORT if normalised(phrase := text.strip()) not in forbidden}
    for templates, count in ((STATEMENTS, 640), (QUESTIONS, 290), (EXCLAMATIONS, 130), (DIALOGUE, 180)):
        target = len(sentences) + count
        while len(sentences) < target:
            sentence = fill(rng.choice(templates), rng)
            if len(sentence) <= 190 and normalised(sentence) not in forbidden:
                sentences.add(sentence)
    words = dictionary_words()
    target = len(sentences) + 900
    while len(sentences) < target:
        sentences.add(word_salad(words, rng))
    assert forbidden.isdisjoint(normalised(sentence) for sentence in sentences), "an evaluation sentence would be trained on"
    ordered = sorted(sentences)
    rng.shuffle(ordered)
    return ordered
