"""Phones as features, so that languages share them: an English phone, or a symbol of espeak-ng, becomes numbers from 0 to 1."""

import unicodedata

import numpy as np
from numpy.typing import NDArray

# Height (1: close), backness (1: back), rounding.
VOWELS = {
    "i": (1, 0, 0), "y": (1, 0, 1), "ɨ": (1, 0.5, 0), "ʉ": (1, 0.5, 1), "ɯ": (1, 1, 0), "u": (1, 1, 1),
    "ɪ": (0.83, 0.17, 0), "ᵻ": (0.83, 0.4, 0), "ʏ": (0.83, 0.17, 1), "ʊ": (0.83, 0.83, 1),
    "e": (0.67, 0, 0), "ø": (0.67, 0, 1), "ɘ": (0.67, 0.5, 0), "ɵ": (0.67, 0.5, 1), "ɤ": (0.67, 1, 0), "o": (0.67, 1, 1),
    "ə": (0.5, 0.5, 0), "ɚ": (0.5, 0.5, 0),
    "ɛ": (0.33, 0, 0), "œ": (0.33, 0, 1), "ɜ": (0.33, 0.5, 0), "ɝ": (0.33, 0.5, 0), "ʌ": (0.33, 0.8, 0), "ɔ": (0.33, 1, 1),
    "æ": (0.17, 0, 0), "ɐ": (0.17, 0.5, 0),
    "a": (0, 0.25, 0), "ɑ": (0, 1, 0), "ɒ": (0, 1, 1),
}  # fmt: skip
PLACES = ("labial", "labiodental", "dental", "alveolar", "postalveolar", "retroflex", "palatal", "velar", "uvular", "glottal")
MANNERS = ("stop", "fricative", "nasal", "lateral", "trill", "tap", "approximant")
# Place, manner, voiced.
CONSONANTS = {
    symbol: (place, manner, voiced)
    for place, manner, voiceless, voiced_ones in (
        ("labial", "stop", "p", "b"), ("alveolar", "stop", "t", "d"), ("retroflex", "stop", "ʈ", "ɖ"),
        ("palatal", "stop", "c", "ɟ"), ("velar", "stop", "k", "ɡg"), ("uvular", "stop", "q", "ɢ"), ("glottal", "stop", "ʔ", ""),
        ("labial", "fricative", "ɸ", "β"), ("labiodental", "fricative", "f", "v"), ("dental", "fricative", "θ", "ð"),
        ("alveolar", "fricative", "s", "z"), ("postalveolar", "fricative", "ʃɕ", "ʒʑ"), ("retroflex", "fricative", "ʂ", "ʐ"),
        ("palatal", "fricative", "ç", "ʝ"), ("velar", "fricative", "x", "ɣ"), ("uvular", "fricative", "χ", "ʁ"),
        ("glottal", "fricative", "h", "ɦ"),
        ("labial", "nasal", "", "m"), ("alveolar", "nasal", "", "n"), ("retroflex", "nasal", "", "ɳ"), ("palatal", "nasal", "", "ɲ"),
        ("velar", "nasal", "", "ŋ"),
        ("alveolar", "lateral", "", "lɫ"), ("retroflex", "lateral", "", "ɭ"), ("palatal", "lateral", "", "ʎ"),
        ("alveolar", "trill", "", "r"), ("uvular", "trill", "", "ʀ"), ("alveolar", "tap", "", "ɾ"), ("retroflex", "tap", "", "ɽ"),
        ("labiodental", "approximant", "", "ʋ"), ("postalveolar", "approximant", "", "ɹɻ"), ("palatal", "approximant", "", "jɥ"),
        ("labial", "approximant", "", "w"),
    )
    for symbols, voiced in ((voiceless, 0), (voiced_ones, 1))
    for symbol in symbols
}  # fmt: skip
# The phones of the English voice.
ENGLISH = {
    "aa": "ɑː", "ae": "æ", "ah": "ʌ", "ao": "ɔː", "aw": "aʊ", "ax": "ə", "ay": "aɪ", "eh": "ɛ", "er": "ɚ", "ey": "eɪ", "ih": "ɪ",
    "iy": "iː", "ow": "oʊ", "oy": "ɔɪ", "uh": "ʊ", "uw": "uː", "ch": "tʃ", "dh": "ð", "g": "ɡ", "hh": "h", "jh": "dʒ", "ng": "ŋ",
    "r": "ɹ", "sh": "ʃ", "th": "θ", "y": "j", "zh": "ʒ",
}  # fmt: skip
OTHERS = ("pause", "vowel", "height", "backness", "rounded", "end height", "end backness", "end rounded", "long", "nasal vowel", "rhotic",
          "voiced", "affricate", "palatalised", "velarised", "syllabic", "reduced")  # fmt: skip
NAMES = (*OTHERS, *PLACES, *MANNERS)
FEATURES = len(NAMES)
assert len(set(NAMES)) == FEATURES


def features_of(symbol: str, english: bool = False) -> NDArray[np.float32]:
    """[FEATURES]. Symbols that are not in the tables are an error: a sound would be lost."""
    found = dict.fromkeys(NAMES, 0.0)
    if symbol == "pau":
        found["pause"] = 1
        return np.array(list(found.values()), np.float32)
    text = unicodedata.normalize("NFD", ENGLISH.get(symbol, symbol) if english else symbol)
    vowels = [VOWELS[letter] for letter in text if letter in VOWELS]
    consonants = [CONSONANTS[letter] for letter in text if letter in CONSONANTS]
    if vowels:
        found["vowel"] = found["voiced"] = 1
        found["height"], found["backness"], found["rounded"] = vowels[0]
        found["end height"], found["end backness"], found["end rounded"] = vowels[-1]
        if consonants and consonants[-1][1] == "nasal":
            found["nasal vowel"] = 1
    elif consonants:
        # An affricate is the stop that it begins with and the fricative that it ends with.
        for place, manner, voiced in consonants:
            found[place] = found[manner] = 1
            found["voiced"] = voiced
        found["affricate"] = float(len(consonants) > 1)
    else:
        raise KeyError(f"no features for {symbol!r}")
    marks = {"ː": "long", "\N{COMBINING TILDE}": "nasal vowel", "ʲ": "palatalised", "ɕ": "palatalised", "ʑ": "palatalised", "ɫ": "velarised", "ɭ": "velarised", "-": "reduced",
             "\N{COMBINING VERTICAL LINE BELOW}": "syllabic", "ɚ": "rhotic", "ɝ": "rhotic"}  # fmt: skip
    for letter in text:
        if letter in marks:
            found[marks[letter]] = 1
    return np.array(list(found.values()), np.float32)
