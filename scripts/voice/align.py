"""Finds the phones in the recordings: hidden Markov models, then a small classifier in their place.

Each phone is three states in a row. Between two words there may be a pause. The first guess stretches usual durations between
the silences; then the states' Gaussians and the best paths improve each other. At last a convolutional net learns to name the
state of a row, and its opinion aligns twice more. Held-out recordings are aligned, but nothing is learnt from them.

The result is work/alignment.jsonl: `{"name", "phones", "ends", "score"}` for each recording, where `phones` are places in the
phones of its text, or -1 for a pause, `ends` are rows of 5 ms, and `score` is the mean log likelihood of a row.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.fft
import scipy.ndimage
import torch
from numpy.typing import NDArray
from torch import nn

from analysis import load_features
from phonemes import PAUSE, PHONE, STRESS, WORD_START, ask_phonemes, phone_set
from recordings import WORK, held_out, texts

STATES = 3
CEPSTRA = 14
ROUNDS = 6
VARIANCE_PRIOR_ROWS = 50
GROUP = 64  # utterances of like length whose paths are searched together
IMPOSSIBLE = np.float32(-1e30)
UNEXPECTED_PAUSE = -6.0  # log probability of a pause without a mark
SHORT_PAUSE_ROWS = 10  # a shorter one belongs to a neighbour
CLASSIFIER_STEPS = (450, 250)
CLASSIFIER_TRUST = 0.7  # neighbouring rows say much the same: their likelihoods count less
BATCH, CROP_ROWS = 12, 256
SEED = 1

# Usual milliseconds, only for the first guess.
USUAL_MS = {
    **dict.fromkeys("aa ae ao aw ay er ey iy ow oy uw".split(), 120), **dict.fromkeys("ah eh ih uh".split(), 85), "ax": 55,
    **dict.fromkeys("p t k".split(), 85), **dict.fromkeys("b d g".split(), 65), **dict.fromkeys("ch jh f th s sh".split(), 105),
    **dict.fromkeys("v dh z zh".split(), 75), "hh": 60, **dict.fromkeys("m n ng".split(), 70), **dict.fromkeys("l r w y".split(), 65),
}  # fmt: skip
STOPS = frozenset("b ch d g jh k p t ɡ ts tʃ dʒ tɕ tʃʲ bʲ dʲ ɡʲ kʲ pʲ tʲ".split())

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass
class Utterance:
    name: str
    held_out: bool
    phones: Integers  # ids of the sounds, pauses left out
    usual: NDArray[np.float64]  # rows
    values: Floats  # [rows, 30]
    silent: NDArray[np.bool_]  # rows that are far below the loudest
    # The chain of states: which state it is, of which phone (-1: a pause), and the log probabilities of entering it from the
    # state before, and from the state before the pause before it.
    states: Integers
    owners: Integers
    enter: Floats
    skip: Floats
    path: Integers  # place in the chain of each row


def usual_ms(name: str, is_vowel: bool) -> float:
    """Of an English phone, or of a symbol of espeak-ng."""
    if name in USUAL_MS:
        return USUAL_MS[name]
    if is_vowel:
        return 55 if name.startswith("ə") else 120 if "ː" in name or len(name) > 1 else 85
    return 105 if len(name) > 1 or name in "ʃçxχɕʂ" else 70


def acoustic_values(f0: Floats, bands: Floats) -> Floats:
    """Cepstra and voicing of each row, and how they change."""
    cepstra = scipy.fft.dct(bands, axis=1, norm="ortho")[:, :CEPSTRA]
    static = np.column_stack([cepstra, 2.0 * (f0 > 0)])
    padded = np.pad(static, ((4, 4), (0, 0)), mode="edge")
    change = padded[6:-2] - padded[2:-6] + 0.5 * (padded[8:] - padded[:-8])
    return np.concatenate([static, change], 1).astype(np.float32)


def read_utterance(name: str, ids: Integers, is_held_out: bool, work: Path) -> Utterance:
    f0, bands = load_features(name, work)
    names, vowels = phone_set(work).names, phone_set(work).vowels
    sounds = np.flatnonzero(ids[PHONE] != PAUSE)
    phones = ids[PHONE, sounds]
    level = bands.mean(1)
    level = np.convolve(np.pad(level, 2, mode="edge"), np.ones(5) / 5, "valid")
    low, high = np.percentile(level, [5, 95])
    usual = np.array([usual_ms(names[phone], names[phone] in vowels) / 5 for phone in phones])
    usual *= np.where(ids[STRESS, sounds] > 0, 1.15, 0.95)

    states, owners, enter, skip = [], [], [], []

    def add(phone: int, owner: int, entering: float) -> None:
        states.extend(phone * STATES + np.arange(STATES))
        owners.extend([owner] * STATES)
        enter.extend([entering, 0.0, 0.0])
        skip.extend([IMPOSSIBLE] * STATES)

    add(PAUSE, -1, 0.0)
    for place, sound in enumerate(sounds):
        marked = ids[PHONE, sound - 1] == PAUSE
        if place > 0 and (marked or ids[WORD_START, sound]):
            if marked:
                usual[place - 1] *= 1.5
            add(PAUSE, -1, 0.0 if marked else UNEXPECTED_PAUSE)
            add(int(phones[place]), place, 0.0)
            skip[-STATES] = UNEXPECTED_PAUSE / 4 if marked else 0.0
        else:
            add(int(phones[place]), place, 0.0)
    add(PAUSE, -1, 0.0)
    return Utterance(
        name, is_held_out, phones, usual, acoustic_values(f0, bands), level < low + 0.25 * (high - low),
        np.array(states), np.array(owners), np.array(enter, np.float32), np.array(skip, np.float32), np.zeros(len(f0), np.int64),
    )  # fmt: skip


def spread(rows: int) -> Integers:
    """The states of a pause, evenly over its rows."""
    return np.arange(rows) * STATES // max(1, rows)


def first_guess(utterance: Utterance) -> Integers:
    """A path of usual durations, stretched between the silences of the recording."""
    rows = len(utterance.values)
    loud = np.flatnonzero(~utterance.silent)
    begin, end = loud[0], loud[-1] + 1
    labels, count = scipy.ndimage.label(utterance.silent)
    runs = [np.flatnonzero(labels == label) for label in range(1, count + 1)]
    gaps = [(run[0], run[-1] + 1) for run in runs if len(run) >= 20 and begin < run[0] and run[-1] < end]

    # Each gap lies at the word boundary that is nearest when the speech alone is stretched evenly.
    usual_ends = np.cumsum(utterance.usual)
    owners = utterance.owners
    boundaries = np.array([owners[i + STATES] for i in range(STATES, len(owners) - STATES, STATES) if owners[i] < 0], np.int64)
    speech_rows = end - begin - sum(b - a for a, b in gaps)
    anchors = [(0, begin, begin)]  # first phone after the gap, rows of the gap
    passed = 0
    for a, b in gaps:
        if len(boundaries):
            wanted = (a - begin - passed) / speech_rows * usual_ends[-1]
            boundary = int(boundaries[np.argmin(np.abs(usual_ends[boundaries - 1] - wanted))])
            if boundary > anchors[-1][0] and a > anchors[-1][2]:
                anchors.append((boundary, a, b))
        passed += b - a
    anchors.append((len(utterance.phones), end, rows))

    path = np.zeros(rows, np.int64)
    chain_of = {int(owner): i for i, owner in reversed(list(enumerate(owners))) if owner >= 0}
    for (first, _, start), (last, stop, after) in zip(anchors, anchors[1:]):
        share = np.concatenate([[0], np.cumsum(utterance.usual[first:last])])
        edges = start + share / share[-1] * (stop - start)
        for phone in range(first, last):
            a, b = edges[phone - first], edges[phone - first + 1]
            for state in range(STATES):
                path[int(a + (b - a) * state / STATES) : int(a + (b - a) * (state + 1) / STATES)] = chain_of[phone] + state
        path[stop:after] = chain_of[last - 1] + STATES + spread(after - stop)  # the pause after the last phone
    path[:begin] = spread(begin)
    return path


def best_paths(group: list[Utterance], scores: list[Floats]) -> list[tuple[Integers, float]]:
    """Viterbi search. `scores` [rows, chain] are log likelihoods."""
    count, rows, chain = len(group), max(map(len, scores)), max(score.shape[1] for score in scores)
    likelihood = np.full((rows, count, chain), IMPOSSIBLE, np.float32)
    enter = np.full((count, chain), IMPOSSIBLE, np.float32)
    skip = np.full((count, chain), IMPOSSIBLE, np.float32)
    for i, (utterance, score) in enumerate(zip(group, scores)):
        likelihood[: len(score), i, : score.shape[1]] = score
        enter[i, : score.shape[1]] = utterance.enter
        skip[i, : score.shape[1]] = utterance.skip
    jump = STATES + 1  # over a pause
    total = np.full((count, chain), IMPOSSIBLE, np.float32)
    total[:, 0] = likelihood[0, :, 0]
    moves = np.zeros((rows, count, chain), np.int8)
    finals = np.zeros(count, np.float32)
    for row in range(1, rows):
        best = total.copy()
        entered = total[:, :-1] + enter[:, 1:]
        better = entered > best[:, 1:]
        best[:, 1:][better] = entered[better]
        moves[row, :, 1:] = better
        skipped = total[:, :-jump] + skip[:, jump:]
        better = skipped > best[:, jump:]
        best[:, jump:][better] = skipped[better]
        moves[row, :, jump:][better] = jump
        total = np.maximum(best + likelihood[row], IMPOSSIBLE)
        for i in np.flatnonzero([len(score) == row + 1 for score in scores]):
            finals[i] = total[i, scores[i].shape[1] - 1]
    results = []
    for i, score in enumerate(scores):
        path = np.empty(len(score), np.int64)
        place = score.shape[1] - 1
        for row in range(len(score) - 1, -1, -1):
            path[row] = place
            place -= int(moves[row, i, place])
        results.append((path, float(finals[i]) / len(score)))
    return results


def realign(utterances: list[Utterance], score_of) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sets all paths. Returns each utterance's score, and by how many rows the phones' boundaries moved."""
    order = sorted(range(len(utterances)), key=lambda i: len(utterances[i].values))
    result, moved = np.zeros(len(utterances)), []
    for start in range(0, len(order), GROUP):
        chosen = order[start : start + GROUP]
        group = [utterances[i] for i in chosen]
        for i, (path, score) in zip(chosen, best_paths(group, [score_of(utterance) for utterance in group])):
            utterance = utterances[i]
            result[i] = score
            firsts = np.flatnonzero(np.diff(utterance.owners, prepend=-2) != 0)
            moved.append(np.abs(np.searchsorted(path, firsts) - np.searchsorted(utterance.path, firsts)))
            utterance.path = path
    return result, np.concatenate(moved)


def fit_gaussians(utterances: list[Utterance], states: int):
    """One Gaussian for each state, from the present paths. Returns the scoring function."""
    values = np.concatenate([utterance.values for utterance in utterances]).astype(np.float64)
    labels = np.concatenate([utterance.states[utterance.path] for utterance in utterances])
    rows = np.bincount(labels, minlength=states).astype(float)[:, None]
    sums = np.stack([np.bincount(labels, column, states) for column in values.T], 1)
    squares = np.stack([np.bincount(labels, column**2, states) for column in values.T], 1)
    mean = sums / np.maximum(rows, 1)
    variance = np.maximum(squares / np.maximum(rows, 1) - mean**2, 0.05)
    variance = (variance * rows + VARIANCE_PRIOR_ROWS) / (rows + VARIANCE_PRIOR_ROWS)
    linear = (mean / variance).astype(np.float32)
    square = (-0.5 / variance).astype(np.float32)
    constant = (-0.5 * (np.log(variance) + mean**2 / variance).sum(1)).astype(np.float32)

    def score(utterance: Utterance) -> Floats:
        states = utterance.states
        return utterance.values**2 @ square[states].T + utterance.values @ linear[states].T + constant[states]

    return score


def make_classifier(states: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    channels = 2 * (CEPSTRA + 1)
    for kernel in (9, 5, 3):
        layers += [nn.Conv1d(channels, 192, kernel, padding=kernel // 2), nn.ReLU(), nn.Dropout(0.2)]
        channels = 192
    return nn.Sequential(*layers, nn.Conv1d(channels, states, 1))


def fit_classifier(net: nn.Sequential, utterances: list[Utterance], states: int, steps: int, rng: np.random.Generator):
    """Trains the net on the present paths. Returns the scoring function."""
    labels = [utterance.states[utterance.path] for utterance in utterances]
    usual = np.bincount(np.concatenate(labels), minlength=states) + 50.0
    log_usual = np.log(usual / usual.sum()).astype(np.float32)
    optimiser = torch.optim.Adam(net.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - 0.9 * step / steps)
    net.train()
    losses = []
    for _ in range(steps):
        values = np.zeros((BATCH, 2 * (CEPSTRA + 1), CROP_ROWS), np.float32)
        wanted = np.full((BATCH, CROP_ROWS), -100)
        for row, i in enumerate(rng.integers(len(utterances), size=BATCH)):
            start = rng.integers(max(1, len(labels[i]) - CROP_ROWS + 1))
            crop = labels[i][start : start + CROP_ROWS]
            values[row, :, : len(crop)] = utterances[i].values[start : start + CROP_ROWS].T
            wanted[row, : len(crop)] = crop
        loss = nn.functional.cross_entropy(net(torch.from_numpy(values)), torch.from_numpy(wanted), label_smoothing=0.05)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    print(f"classifier: {steps} steps, loss {np.mean(losses[-50:]):.3f}", flush=True)
    net.eval()

    @torch.no_grad()
    def score(utterance: Utterance) -> Floats:
        logits = net(torch.from_numpy(utterance.values.T[None].copy()))
        log_share = torch.log_softmax(logits[0].T, 1).numpy() - log_usual
        return CLASSIFIER_TRUST * log_share[:, utterance.states]

    return score


def segments(utterance: Utterance, names: list[str]) -> tuple[list[int], list[int]]:
    """Phones in order (-1: a pause) and the rows where they end. A short pause goes to the phone before, or into a stop."""
    owner = utterance.owners[utterance.path]
    ends = [*np.flatnonzero(np.diff(owner)) + 1, len(owner)]
    phones: list[int] = []
    result: list[int] = []
    start = 0
    for end in ends:
        phone = int(owner[start])
        if phone < 0 and start > 0 and end < len(owner) and end - start < SHORT_PAUSE_ROWS:
            # Without an entry of its own, it becomes the beginning of what follows.
            if names[utterance.phones[owner[end]]] not in STOPS:
                result[-1] = int(end)
        else:
            phones.append(phone)
            result.append(int(end))
        start = end
    return phones, result


def align(work: Path = WORK, language: str | None = None) -> None:
    """@param language of espeak-ng: the phones are its symbols then"""
    began = time.time()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    said, kept_out = texts(work), set(held_out(work))
    tracks = ask_phonemes(list(said.values()), work, language)
    names = phone_set(work).names
    states = len(names) * STATES
    utterances = [read_utterance(name, ids, name in kept_out, work) for name, ids in zip(said, tracks)]
    training = [utterance for utterance in utterances if not utterance.held_out]
    sample = np.concatenate([utterance.values for utterance in training[::5]])
    for utterance in utterances:
        utterance.values = (utterance.values - sample.mean(0)) / sample.std(0)
        utterance.path = first_guess(utterance)
    print(f"{len(utterances)} utterances, {len(training)} to learn from, {time.time() - began:.0f} s", flush=True)

    def report(what: str, scores: NDArray[np.float64], moved: NDArray[np.float64]) -> None:
        far = np.percentile(moved, [90, 99]) * 5
        print(f"{what}: score {scores.mean():.3f}, boundaries moved {moved.mean() * 5:.1f} ms,"
              f" 90 % {far[0]:.0f}, 99 % {far[1]:.0f}; {time.time() - began:.0f} s", flush=True)  # fmt: skip

    for number in range(ROUNDS):
        report(f"round {number + 1}", *realign(training, fit_gaussians(training, states)))
    realign(utterances, fit_gaussians(training, states))
    net = make_classifier(states)
    for steps in CLASSIFIER_STEPS:
        score = fit_classifier(net, training, states, steps, rng)
        report("classifier", *realign(training, score))
    scores, _ = realign(utterances, score)
    with open(work / "alignment.jsonl", "w") as file:
        for utterance, value in zip(utterances, scores):
            phones, ends = segments(utterance, names)
            line = {"name": utterance.name, "phones": phones, "ends": ends, "score": round(float(value), 3)}
            file.write(json.dumps(line) + "\n")
    np.savez(work / "tracks.npz", **dict(zip(said, tracks)))


if __name__ == "__main__":
    align()
