"""What keeps the predicted features from being too smooth: nets that tell them from the person's.

A net trained for the least error gives the average of all that could be said. Listeners hear that as a robot. Each
discriminator looks at one view of the rows; its layers' outputs also serve as a measure of likeness.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from model import BANDS, PITCH_VALUES

SLOPE = 0.1
BROAD_CEPSTRA = 9  # the cepstra below describe what is the speaker's and the vowel's
TREND_ROWS = 31  # about a syllable
STEP_SCALE = 6.0  # brings F0's steps to the size of the other values

Judged = tuple[Tensor, list[Tensor]]


def weight_norm(layer: nn.Module) -> nn.Module:
    return nn.utils.weight_norm(layer)


class Discriminator(nn.Module):
    def __init__(self, layers: list[nn.Module], last: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList([weight_norm(layer) for layer in layers])
        self.last = weight_norm(last)

    def forward(self, view: Tensor) -> Judged:
        """The judgement at each place (1 for the person), and all layers' outputs."""
        outputs = []
        for layer in self.layers:
            view = nn.functional.leaky_relu(layer(view), SLOPE)
            outputs.append(view)
        return self.last(view), outputs


def course_discriminator(values: int, channels: int, kernel: int) -> Discriminator:
    """Of [B, values, rows]: the course of all values in time."""
    sizes = [(values, 1), (channels, 2), (channels, 2), (channels, 2)]
    layers: list[nn.Module] = [
        nn.Conv1d(size, channels, kernel, stride, padding=kernel // 2) for size, stride in sizes
    ]
    return Discriminator(layers, nn.Conv1d(channels, 1, 3, padding=1))


def picture_discriminator(planes: int, channels: int = 12) -> Discriminator:
    """Of [B, planes, bands, rows]: envelopes as pictures."""
    steps = [(planes, channels, (2, 1)), (channels, 2 * channels, (2, 2)), (2 * channels, 2 * channels, (2, 2))]
    layers: list[nn.Module] = [nn.Conv2d(size, out, 5, stride, padding=2) for size, out, stride in steps]
    return Discriminator(layers, nn.Conv2d(2 * channels, 1, 3, padding=1))


def fine_structure() -> Tensor:
    """[80, 80]: takes the broad shape out of log bands, so that only cepstra from 9 on are left."""
    waves = np.cos(np.outer(np.linspace(0, np.pi, BANDS), np.arange(BROAD_CEPSTRA)))
    basis, _ = np.linalg.qr(waves)
    return torch.tensor(np.eye(BANDS) - basis @ basis.T, dtype=torch.float32)


FINE_STRUCTURE = fine_structure()


def centred(bands: Tensor) -> Tensor:
    """Without the mean of the stretch: level and long-term spectrum."""
    return bands - bands.mean(1, keepdim=True)


def all_rows(rows: Tensor) -> Tensor:
    return torch.cat([rows[:, :, :PITCH_VALUES], centred(rows[:, :, PITCH_VALUES:])], 2).transpose(1, 2)


def picture(rows: Tensor) -> Tensor:
    return centred(rows[:, :, PITCH_VALUES:]).transpose(1, 2).unsqueeze(1)


def tune(rows: Tensor, voiced: Tensor) -> Tensor:
    """F0 where it is heard, F0 about its mean, and its steps from row to row."""
    log_f0 = rows[:, :, 0]
    mean = (log_f0 * voiced).sum(1, keepdim=True) / voiced.sum(1, keepdim=True).clamp(min=1)
    steps = nn.functional.pad(log_f0[:, 1:] - log_f0[:, :-1], (1, 0)) * nn.functional.pad(voiced[:, :-1], (1, 0))
    return torch.stack([log_f0 * voiced, (log_f0 - mean) * voiced, STEP_SCALE * steps * voiced], 1)


def texture(rows: Tensor) -> Tensor:
    """What no speaker owns: the fine structure over frequency, and what is quicker than a syllable."""
    bands = centred(rows[:, :, PITCH_VALUES:])
    edge = TREND_ROWS // 2
    trend = nn.functional.avg_pool1d(bands.transpose(1, 2), TREND_ROWS, 1, edge, count_include_pad=False)
    return torch.stack([(bands @ FINE_STRUCTURE).transpose(1, 2), bands.transpose(1, 2) - trend], 1)


class Judges(nn.Module):
    """The views of the person's speech, and the one view in which another speaker is judged by the person's."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = course_discriminator(PITCH_VALUES + BANDS, 96, 5)
        self.picture = picture_discriminator(1)
        self.tune = course_discriminator(3, 48, 9)
        self.texture = picture_discriminator(2)

    def of_person(self, voiced: Tensor) -> list[tuple[Discriminator, Callable[[Tensor], Tensor]]]:
        """`voiced`: where the person's voice is."""
        return [(self.rows, all_rows), (self.picture, picture), (self.tune, lambda rows: tune(rows, voiced))]


def judge(discriminator: Discriminator, view: Tensor) -> Judged:
    """In bfloat16, which halves the time, with a loss in single precision."""
    with torch.autocast("cpu", torch.bfloat16):
        judgement, outputs = discriminator(view)
    return judgement.float(), [output.float() for output in outputs]


def detection_loss(discriminator: Discriminator, real: Tensor, fake: Tensor) -> Tensor:
    return ((judge(discriminator, real)[0] - 1) ** 2).mean() + (judge(discriminator, fake)[0] ** 2).mean()


def deception_losses(discriminator: Discriminator, real: Tensor | None, fake: Tensor) -> tuple[Tensor, Tensor]:
    """How far the fake is from passing, and how unlike it is to the real one that it should be (0 without one)."""
    judgement, outputs = judge(discriminator, fake)
    passing = ((judgement - 1) ** 2).mean()
    if real is None:
        return passing, torch.zeros(())
    with torch.no_grad():
        _, wanted = judge(discriminator, real)
    return passing, sum((one - other).abs().mean() for one, other in zip(wanted, outputs))
