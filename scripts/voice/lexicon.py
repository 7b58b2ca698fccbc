"""Gives the teacher espeak-ng's pronunciations, as a flite lexicon addendum."""

import re
import subprocess
from pathlib import Path

from corpus import GLUE
from phones import VOWELS, phones_of_ipa

# espeak-ng weakens these according to their neighbours: the teacher's own entries are the better guide.
KEEP = frozenset(GLUE) | frozenset(
    """am an any been being could did do does have him me must no nor shall she should some such them their then these
    those though through us were when where while why how whose whom yes i'm don't""".split()
)


def _flite_phone(phone: str, stress: int) -> str:
    """A phone as flite's lexicon writes it; its schwa is never stressed."""
    return f"{phone}{0 if phone == 'ax' else stress}" if phone in VOWELS else phone


def write_lexicon(sentences: list[str], path: Path) -> int:
    """Writes the pronunciations of all words of the sentences; returns how many there are."""
    words = {word for sentence in sentences for word in re.findall(r"[a-z']+", sentence.lower())}
    wanted = sorted(word for word in words if len(word) > 1 and word not in KEEP and "'" not in word)
    script = Path(__file__).with_name("pronounce.mjs")
    answer = subprocess.run(
        ["node", str(script)], input="\n".join(wanted) + "\n", capture_output=True, text=True, check=True, encoding="utf-8"
    )
    entries = []
    for line in answer.stdout.splitlines():
        word, ipa = line.split("\t")
        phones = phones_of_ipa(ipa)
        if phones:
            spelling = " ".join(_flite_phone(phone, stress) for phone, stress in phones)
            entries.append(f'"{word}" 0 : {spelling}\n')
    path.write_text("".join(entries), encoding="ascii")
    return len(entries)
