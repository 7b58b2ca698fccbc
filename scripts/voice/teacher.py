#!/usr/bin/python3
"""Extra speakers for timbre and for phones that the recordings lack: three voices of flite speak generated sentences.

flite speaks the phones of our own front end: each distinct pronunciation becomes a made-up word of a lexicon, and the sentences
are written with these words. So its phones need no mapping. Its waves are analysed like the recordings. They end at 8 kHz:
above, and where a voice has hardly anything, the envelope is what the person's would be, given the phone and what is below.

The results are like those of recordings.py and align.py, in work/teacher; the features are beside the person's.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.signal
import soundfile
from numpy.typing import NDArray

from analysis import analyse_waves, band_centres_hz, load_features
from corpus import training_sentences
from dataset import SPEAKERS, read_examples
from phonemes import PAUSE, PHONE, STRESS, TERMINAL, WORD_START, PhoneSet, ask_phonemes, phone_set
from recordings import FRAME, SAMPLE_RATE, WORK, frame_levels, held_out, set_level

HERE = Path(__file__).resolve().parent
LIBRARIES = ["flite_cmu_us_slt", "flite_cmu_us_rms", "flite_cmu_us_awb", "flite_usenglish", "flite_cmulex", "flite", "m"]
SENTENCES = 520  # of each speaker
MARKS = ",.?!"  # by terminal class
PITCH_RANGES = {"slt": (90, 420), "rms": (60, 300), "awb": (60, 300)}
LEAD_SECONDS = 0.1  # flite waits longer
BAND_LIMITS_HZ = {"slt": 6900, "rms": 6900, "awb": 4300}  # above, the envelope is not flite's; awb's vowels end there
JOIN_BANDS = 4  # below the limit: what is predicted there differs from what is, and the bands above take over the difference
JOIN_DECAY = 6.0  # bands over which it fades
RIDGE = 20.0
CONSONANT_GAIN_MAX = 1.3
CONSONANTS_FROM_HZ = 1000  # their level is measured from here to the speaker's limit
SONORANTS = frozenset("pau m n ng l r w y".split())

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Rows = tuple[Integers, Floats, Floats]  # phone, F0 (0 where it is unvoiced) and bands of each row


@dataclass
class Spoken:
    name: str
    text: str
    track: Integers
    places: list[int]  # of the phones in the track's sounds, -1 for a pause
    ends: list[int]  # rows


def made_up_word(number: int) -> str:
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    size = len(syllables)
    return syllables[number // size**2] + syllables[number // size % size] + syllables[number % size]


def spell(track: Integers, phones: PhoneSet, lexicon: dict[str, str]) -> str:
    """The sentence in made-up words; `lexicon` gets their pronunciations."""
    words: list[str] = []
    names = [phones.names[phone] for phone in track[PHONE]]
    starts = [i for i in range(len(names)) if track[WORD_START, i] or track[PHONE, i] == PAUSE] + [len(names)]
    for start, end in zip(starts, starts[1:]):
        if track[PHONE, start] == PAUSE:
            if words:
                words[-1] += MARKS[track[TERMINAL, start - 1]]
            continue
        # flite's schwa is never stressed.
        spelling = " ".join(
            f"{name}{0 if name == 'ax' else stress}" if name in phones.vowels else name
            for name, stress in zip(names[start:end], track[STRESS, start:end])
        )
        words.append(lexicon.setdefault(spelling, made_up_word(len(lexicon))))
    return " ".join(words)


def speak(sentences: dict[str, list[str]], folder: Path, work: Path) -> list[Spoken]:
    """Lets flite speak. @param sentences for each speaker"""
    texts = [text for speaker in sentences for text in sentences[speaker]]
    tracks = iter(ask_phonemes(texts, work))
    phones = phone_set(work)
    lexicon: dict[str, str] = {}
    spoken = {speaker: [(text, track := next(tracks), spell(track, phones, lexicon)) for text in sentences[speaker]] for speaker in sentences}
    (folder / "lexicon.txt").write_text("".join(f'"{word}" 0 : {spelling}\n' for spelling, word in lexicon.items()))
    subprocess.run(["gcc", "-O2", "-Wall", "-o", folder / "teacher", HERE / "teacher.c", *(f"-l{name}" for name in LIBRARIES)], check=True)
    result: list[Spoken] = []
    for speaker, utterances in spoken.items():
        text_path = folder / f"{speaker}.text"
        text_path.write_text("".join(f"{written}\n" for _, _, written in utterances))
        # flite reports every sentence; what matters shows in the exit status.
        arguments = [speaker, text_path, folder / "lexicon.txt", folder / speaker]
        subprocess.run([folder / "teacher", *arguments], check=True, stderr=subprocess.DEVNULL)
        labels = (folder / f"{speaker}.txt").read_text().split("U\n")[1:]
        refused = 0
        for number, ((text, track, _), lines) in enumerate(zip(utterances, labels), 1):
            found = take_labels([line.split() for line in lines.splitlines()], track, phones)
            if found is None:
                refused += 1
                continue
            name = f"{speaker}-{number:04}"
            rows = prepare_wave(folder / f"{name}.wav", work / "wav" / f"{name}.wav", *found)
            result.append(Spoken(name, text, track, found[0], rows))
        print(f"{speaker}: {len(utterances)} sentences, {refused} of them spoken otherwise", flush=True)
    return result


def take_labels(lines: list[list[str]], track: Integers, phones: PhoneSet) -> tuple[list[int], list[float]] | None:
    """The phones' places in the track and where they end, in seconds; None if flite spoke something else."""
    wanted = [phones.names[phone] for phone in track[PHONE] if phone != PAUSE]
    if [name for name, _ in lines if name != phones.names[PAUSE]] != wanted or lines[0][0] != phones.names[PAUSE]:
        return None
    places, ends, place = [], [], 0
    for name, end in lines:
        is_pause = name == phones.names[PAUSE]
        if is_pause and places and places[-1] < 0:
            ends[-1] = float(end)
            continue
        places.append(-1 if is_pause else place)
        ends.append(float(end))
        place += not is_pause
    return places, ends


def prepare_wave(source: Path, target: Path, places: list[int], ends: list[float]) -> list[int]:
    """Writes the wave at 24 kHz, with a short lead and at the person's level; returns the rows where the phones end."""
    samples, rate = soundfile.read(source)
    samples = scipy.signal.resample_poly(samples, SAMPLE_RATE, rate, window=("kaiser", 8.0))
    cut = max(0, round((ends[0] - LEAD_SECONDS) * SAMPLE_RATE))
    samples = samples[cut:]
    samples = set_level(samples[: len(samples) // FRAME * FRAME])
    soundfile.write(target, samples, SAMPLE_RATE, subtype="PCM_16")
    rows = len(samples) // FRAME * 2
    result = [min(rows, round((end - cut / SAMPLE_RATE) * 200)) for end in ends]
    result[-1] = rows
    return result


def consonant_levels(rows: Rows, span: slice, phones: PhoneSet) -> Floats:
    """Mean level of the unvoiced rows of each phone, measured from that of the voiced vowels; NaN where there are none."""
    phone, f0, bands = rows
    level = bands[:, span].mean(1)
    is_vowel = np.array([name in phones.vowels for name in phones.names])[phone]
    count = np.bincount(phone[f0 <= 0], minlength=len(phones.names))
    sums = np.bincount(phone[f0 <= 0], level[f0 <= 0], len(phones.names))
    return np.where(count >= 100, sums / np.maximum(count, 1), np.nan) - level[is_vowel & (f0 > 0)].mean()


def raise_consonants(utterances: list[Rows], person: Rows, limit_hz: float, phones: PhoneSet) -> None:
    """Brings voiceless sounds to the person's level, in place: flite's mixed excitation weakens them, above all slt's."""
    first, last = np.searchsorted(band_centres_hz(), [CONSONANTS_FROM_HZ, limit_hz])
    span = slice(int(first), int(last))
    room = person[2][person[0] == PAUSE].mean()
    gain = np.nan_to_num(consonant_levels(person, span, phones) - consonant_levels(stack(utterances), span, phones))
    gain = np.clip(gain, 0, CONSONANT_GAIN_MAX)
    gain[[name in phones.vowels or name in SONORANTS for name in phones.names]] = 0
    print("raised by", {name: round(float(value), 1) for name, value in zip(phones.names, gain) if value > 0.3}, flush=True)
    for phone, f0, bands in utterances:
        audible = np.clip(bands.mean(1) - room, 0, 1)  # not the closure of a stop
        bands += (gain[phone] * (f0 <= 0) * audible)[:, None]


def person_rows(work: Path) -> Rows:
    """Every fourth recording."""
    examples = [e for e in read_examples(work, lambda name: 0, set(held_out(work)), work) if not e.held_out][::4]
    return stack([(np.repeat(e.ids[PHONE], 2 * e.durations), e.rows[:, 0] * e.rows[:, 1], e.rows[:, 2:]) for e in examples])


def regression_inputs(phone: Integers, bands: Floats, mean: Floats, deviation: Floats, phones: int) -> Floats:
    """Standardised lower bands, and the phone as ones and zeros."""
    return np.column_stack([np.clip((bands - mean) / deviation, -3, 3), np.eye(phones, dtype=np.float32)[phone]])


class UpperBands:
    """Linear regressions from the lower bands and the phone to all bands from `JOIN_BANDS` below the limit on."""

    def __init__(self, person: Rows, limit_hz: float, phones: int) -> None:
        self.lower = int((band_centres_hz() < limit_hz).sum())
        self.phones = phones
        phone, f0, bands = person
        self.weights = {}
        for voiced in (False, True):
            chosen = (f0 > 0) == voiced
            known = bands[chosen & (phone != PAUSE), : self.lower]
            inputs = regression_inputs(phone[chosen], bands[chosen, : self.lower], known.mean(0), known.std(0), phones).astype(float)
            products = inputs.T @ inputs + RIDGE * np.eye(inputs.shape[1])
            self.weights[voiced] = np.linalg.solve(products, inputs.T @ bands[chosen, self.lower - JOIN_BANDS :])

    def fill(self, utterances: list[Rows]) -> None:
        """Replaces the bands above the limit of one speaker, in place."""
        phone, f0, bands = stack(utterances)
        fade = np.exp(-np.arange(1, bands.shape[1] - self.lower + 1) / JOIN_DECAY)
        for voiced, weights in self.weights.items():
            known = bands[((f0 > 0) == voiced) & (phone != PAUSE), : self.lower]
            mean, deviation = known.mean(0), known.std(0)
            for phone_of_row, pitch, rows in utterances:
                chosen = (pitch > 0) == voiced
                inputs = regression_inputs(phone_of_row[chosen], rows[chosen, : self.lower], mean, deviation, self.phones)
                wanted = inputs @ weights
                beyond = rows[chosen, self.lower - JOIN_BANDS : self.lower] - wanted[:, :JOIN_BANDS]
                rows[chosen, self.lower :] = wanted[:, JOIN_BANDS:] + beyond.mean(1, keepdims=True) * fade


def stack(utterances: list[Rows]) -> Rows:
    phone, f0, bands = (np.concatenate(part) for part in zip(*utterances))
    return phone, f0, bands


def complete_bands(spoken: list[Spoken], work: Path) -> None:
    """Gives flite's rows clear consonants, the upper bands that the person would have, and a room like the person's."""
    phones = phone_set(work)
    person = person_rows(work)
    room = person[2][person[0] == PAUSE].mean(0)
    for speaker, limit_hz in BAND_LIMITS_HZ.items():
        own = [utterance for utterance in spoken if utterance.name.startswith(speaker)]
        utterances = []
        for utterance in own:
            sounds = utterance.track[PHONE, utterance.track[PHONE] != PAUSE]
            ids = np.array([PAUSE if place < 0 else sounds[place] for place in utterance.places])
            utterances.append((np.repeat(ids, np.diff(utterance.ends, prepend=0)), *load_features(utterance.name, work)))
        raise_consonants(utterances, person, limit_hz, phones)
        UpperBands(person, limit_hz, len(phones.names)).fill(utterances)
        for utterance, (_, pitch, rows) in zip(own, utterances):
            rows = 0.5 * np.logaddexp(2 * rows, 2 * room)
            np.savez(work / "features" / f"{utterance.name}.npz", f0=pitch, bands=rows.astype(np.float16))


def build(work: Path = WORK) -> None:
    folder = work / "teacher"
    folder.mkdir(exist_ok=True)
    texts = training_sentences()
    speakers = SPEAKERS[1:]
    sentences = {speaker: texts[i :: len(speakers)][:SENTENCES] for i, speaker in enumerate(speakers)}
    spoken = speak(sentences, folder, work)
    for speaker, pitch_range in PITCH_RANGES.items():
        names = [utterance.name for utterance in spoken if utterance.name.startswith(speaker)]
        analyse_waves(names, speaker, pitch_range, work)
    complete_bands(spoken, work)
    (folder / "metadata.csv").write_text("".join(f"{utterance.name}|{utterance.text}\n" for utterance in spoken), encoding="utf-8")
    np.savez(folder / "tracks.npz", **{utterance.name: utterance.track for utterance in spoken})
    lines = [json.dumps({"name": u.name, "phones": u.places, "ends": u.ends, "score": 0}) + "\n" for u in spoken]
    (folder / "alignment.jsonl").write_text("".join(lines))


if __name__ == "__main__":
    build()
