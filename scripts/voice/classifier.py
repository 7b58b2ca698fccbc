"""A small convolutional net that tries to tell the person from a voice: log-mel pictures of one second, unseen sentences.

50 % is chance. The level is taken out, and what lies 55 dB below the loud parts: a recording has a room, a synthesizer need not.
"""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from measures import is_loud, log_bands, loud_span
from wave_file import read_wave

WIDTH, HOP = 100, 30  # frames of 10 ms in a picture, and between two pictures
RANGE_NEPER = 55 * np.log(10) / 20
FOLDS = 5
EPOCHS = 40


def pictures(wave: Path) -> NDArray[np.float32]:
    """[pictures, 80 bands, 100 frames], from where the speech begins to where it ends."""
    bands = log_bands(read_wave(wave)[0])
    bands = bands[loud_span(bands)]
    bands -= np.log(np.exp(2 * bands[is_loud(bands)]).mean()) / 2
    frames = np.maximum(bands[: len(bands) // 2 * 2].reshape(-1, 2, bands.shape[1]).mean(1), -RANGE_NEPER)
    starts = range(0, max(1, len(frames) - WIDTH + 1), HOP)
    padded = np.pad(frames, ((0, max(0, WIDTH - len(frames))), (0, 0)), constant_values=-RANGE_NEPER)
    return np.stack([padded[start : start + WIDTH].T for start in starts]).astype(np.float32)


def network() -> nn.Module:
    layers: list[nn.Module] = []
    for inputs, outputs in ((1, 16), (16, 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.3), nn.Linear(64, 1))


def trained(inputs: torch.Tensor, labels: torch.Tensor, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    net = network()
    optimizer = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=1e-2)
    steps = EPOCHS * -(-len(inputs) // 32)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for _ in range(EPOCHS):
        for places in torch.randperm(len(inputs)).split(32):
            if len(places) < 2:
                schedule.step()
                continue
            loss = nn.functional.binary_cross_entropy_with_logits(net(inputs[places])[:, 0], labels[places])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return net.eval()


def accuracy(person: list[Path], voice: list[Path]) -> float:
    """Per cent of the pictures that are told right; both lists hold the same sentences in the same order."""
    torch.set_num_threads(1)
    both = [(pictures(a), pictures(b)) for a, b in zip(person, voice)]
    order = np.random.RandomState(1).permutation(len(both))
    rights = []
    for fold in range(FOLDS):
        tested = set(order[fold::FOLDS])
        sets: dict[bool, list[NDArray[np.float32]]] = {True: [], False: []}
        labels: dict[bool, list[float]] = {True: [], False: []}
        for sentence, pair in enumerate(both):
            for label, some in enumerate(pair):
                sets[sentence in tested].append(some)
                labels[sentence in tested] += [float(label)] * len(some)
        train, test = (torch.tensor(np.concatenate(sets[part]))[:, None] for part in (False, True))
        truth = torch.tensor(labels[False])
        mean, deviation = train.mean((0, 3), keepdim=True), train.std((0, 3), keepdim=True)
        net = trained((train - mean) / deviation, truth, fold)
        with torch.no_grad():
            answers = net((test - mean) / deviation)[:, 0] > 0
        right = answers == (torch.tensor(labels[True]) > 0.5)
        # Person and voice count the same, however many pictures each has.
        known = torch.tensor(labels[True]) > 0.5
        rights.append(float((right[known].float().mean() + right[~known].float().mean()) / 2))
    return 100 * float(np.mean(rights))
