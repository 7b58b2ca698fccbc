"""The evaluation's sentences. The generator of training text leaves them out."""

import re
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("eval-sentences.txt")
SHORT_WORDS = 3  # an utterance of so many words or fewer counts as short


@dataclass(frozen=True)
class Sentence:
    text: str
    words: tuple[str, ...]  # transcripts that count as right

    @property
    def is_short(self) -> bool:
        return len(self.words[0].split()) <= SHORT_WORDS

    @property
    def is_question(self) -> bool:
        return self.text.endswith("?")


def normalised(sentence: str) -> str:
    """Lower-case words only: what two sentences are compared by, and what a recogniser answers with."""
    return " ".join(re.findall(r"[a-z']+", sentence.lower()))


def evaluation_sentences() -> list[Sentence]:
    """Each line is a text. Where digits are in it, or one sound has two spellings, the words to expect follow, each after a `|`."""
    sentences = []
    for line in FILE.read_text(encoding="ascii").splitlines():
        text, *words = line.split("|")
        sentences.append(Sentence(text, tuple(words) or (normalised(text),)))
    return sentences


def evaluation_texts() -> list[str]:
    return [sentence.text for sentence in evaluation_sentences()]
