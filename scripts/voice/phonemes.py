"""Phones of texts, from the service's own front end (phonemes.ts): training and service agree because they are the same.

BUILD names another folder than dist with the compiled service.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recordings import WORK

REPOSITORY = Path(__file__).resolve().parents[2]
NODE = REPOSITORY / "node_modules" / "node" / "bin" / "node"  # the service's own runtime
SCRIPT = REPOSITORY / os.environ.get("BUILD", "dist") / "scripts" / "voice" / "phonemes.js"

# Rows of `ids`.
PHONE, STRESS, WORD_START, TERMINAL = range(4)
# Terminal classes of a clause, by the punctuation that ends it.
CONTINUING, PERIOD, QUESTION, EXCLAMATION = range(4)
PAUSE = 0  # its phone id

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class PhoneSet:
    names: list[str]  # in id order; the pause is the first
    vowels: frozenset[str]


def ask_phonemes(texts: list[str], work: Path = WORK, language: str | None = None) -> list[Integers]:
    """`ids` [4, phones] of each text, with a pause before the first clause and after each."""
    lines = "".join(f"{json.dumps(text)}\n" for text in texts)
    answer = subprocess.run([NODE, SCRIPT, *([language] if language else [])], input=lines, stdout=subprocess.PIPE, text=True, check=True, cwd=REPOSITORY)
    first, *rest = answer.stdout.splitlines()
    (work / "phones.json").write_text(first)
    tracks = [np.array([track[row] for row in ("ids", "stress", "wordStart", "terminal")], np.int64) for track in map(json.loads, rest)]
    assert len(tracks) == len(texts), "phonemes.ts did not answer all texts"
    return tracks


@cache
def phone_set(work: Path = WORK) -> PhoneSet:
    """The phones of the last answer."""
    value = json.loads((work / "phones.json").read_text())
    return PhoneSet(value["phones"], frozenset(value["vowels"]))
