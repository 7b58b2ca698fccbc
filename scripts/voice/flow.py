"""The model of several people: durations, and F0 and envelopes that are drawn, not averaged.

A net with the least error gives the mean of all that could be said. A flow learns the distribution instead: it moves noise to what is
said, along straight lines, in a few steps (conditional flow matching). One flow draws F0 and voicing of each frame, a second one the
envelopes, which know F0. An envelope is drawn for each frame, and rows lie between two: what is quicker is jitter of the analysis, and to
draw that costs more than to leave it (README.md, "Envelopes that are drawn"). It is drawn as cepstra, each of deviation 1: among bands, the
fine structure would be lost in the noise until the last step. Phones are features (sounds.py), so languages share them; a person and a
language are embeddings.

Tensors are [batch, time, channels]. All fields are finite, and noise belongs to a frame: so a window gives what the whole gives.
"""

import math
from dataclasses import dataclass

import scipy.fft
import torch
from torch import Tensor, nn

from dataset import FRAME_ROWS, STYLES
from model import BANDS, LEAST_LOG_SPREAD, MOST_LOG_SPREAD, PITCH_VALUES, PLACES, POSITIONS, spread_over_frames
from sounds import FEATURES

FRAME_PITCH = FRAME_ROWS * PITCH_VALUES
CEPSTRA = 56  # of an envelope, that are drawn: finer structure is not heard
TEMPERATURE = 0.5  # of their noise: without guidance it would flatten them
# How much a draw keeps to its condition: coarse structure would get too wide with as much as fine structure needs.
GUIDANCE_LOW, GUIDANCE_HIGH = 1.5, 2.2
LAST_LOW, FIRST_HIGH = 3, 15  # cepstra
COLOURS = 6  # of a recording: level and long-term spectrum
FLAGS = 3  # stress, first phone of a word, end of a sentence

LANGUAGES = ("en", "de", "nl", "fr", "ru")
PEOPLE_MAX, SYMBOLS_MAX = 8, 320
PERSON, LANGUAGE = 32, 16
SYMBOL_DROPOUT = 0.3  # of a phone's own embedding: the features must suffice

HIDDEN = 192
ENCODER_KERNEL, ENCODER_DILATIONS = 5, (1, 1, 1, 1)  # ±8 phones
TRUNK_KERNEL, TRUNK_DILATIONS = 5, (1, 1, 2, 2)  # ±12 frames
ENVELOPE_WIDTH, ENVELOPE_KERNEL, ENVELOPE_DILATIONS = 256, 3, (1, 1, 2, 1)  # ±5 frames for each step
PITCH_TRUNK_DILATIONS = (1, 2, 4)  # ±14 frames
PITCH_WIDTH, PITCH_KERNEL, PITCH_DILATIONS = 96, 5, (1, 2)  # ±6 frames for each step
TIME_VALUES, MOMENT = 32, 128
ENCODER_DROPOUT, FRAME_DROPOUT = 0.15, 0.1
UNCONDITIONAL_SHARE = 0.1  # of the examples: their draws know no condition
DEVIATION_OF_DISTANCE = 1.4  # of a Laplace distribution, whose mean distance is 1
LEAST_DISTANCE, MOST_DISTANCE = -4.0, 0.5  # ln


class Convolution(nn.Module):
    """values + Project(SiLU(Conv(Norm(values)))), where a manner scales and shifts the normed values."""

    def __init__(self, channels: int, kernel: int, dilation: int, dropout: float, manner: int = 0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.conv = nn.Linear(kernel * channels, channels)
        self.project = nn.Linear(channels, channels)
        self.dropout = nn.Dropout(dropout)
        self.kernel, self.dilation = kernel, dilation
        self.reach = kernel // 2 * dilation
        self.manner = nn.Linear(manner, 2 * channels) if manner else None
        if self.manner:
            nn.init.zeros_(self.manner.weight)
            nn.init.zeros_(self.manner.bias)

    def forward(self, values: Tensor, mask: Tensor, manner: Tensor | None = None) -> Tensor:
        normed = self.norm(values)
        if self.manner:
            scale, shift = self.manner(manner).float().unsqueeze(1).chunk(2, 2)
            normed = normed * (1 + scale) + shift
        normed = normed * mask
        if torch.is_autocast_cpu_enabled():
            normed = normed.bfloat16()  # before the copies: half the memory
        padded = nn.functional.pad(normed, (0, 0, self.reach, self.reach))
        shifts = [padded[:, tap * self.dilation : (tap + 1 - self.kernel) * self.dilation or None] for tap in range(self.kernel)]
        return values + self.project(self.dropout(nn.functional.silu(self.conv(torch.cat(shifts, 2))))).float()


def stack(channels: int, kernel: int, dilations: tuple[int, ...], dropout: float, manner: int = 0) -> nn.ModuleList:
    return nn.ModuleList([Convolution(channels, kernel, dilation, dropout, manner) for dilation in dilations])


def time_values(time: Tensor) -> Tensor:
    """[B] -> [B, TIME_VALUES]"""
    rates = torch.exp(torch.arange(TIME_VALUES // 2) * (math.log(50.0) / (TIME_VALUES // 2 - 1)))
    angles = time.unsqueeze(1) * rates * math.pi
    return torch.cat([torch.cos(angles), torch.sin(angles)], 1)


class Velocity(nn.Module):
    """Where a draw [B, T, values] at `time` [B] is moving to, from noise to values of mean 0 and deviation 1.

    If these were noise, too, the velocity would be a multiple of the draw. The net only adds what they are beyond noise: so a draw is
    right in mean and deviation from the first step of the training on, and fewer steps suffice.
    """

    def __init__(self, values: int, width: int, kernel: int, dilations: tuple[int, ...]) -> None:
        super().__init__()
        self.enter = nn.Linear(values + HIDDEN, width)
        self.moment = nn.Sequential(nn.Linear(TIME_VALUES + PERSON, MOMENT), nn.SiLU())
        self.blocks = stack(width, kernel, dilations, FRAME_DROPOUT, MOMENT)
        self.norm = nn.LayerNorm(width)
        self.leave = nn.Linear(width, values)
        nn.init.zeros_(self.leave.weight)

    def forward(self, values: Tensor, time: Tensor, condition: Tensor, person: Tensor, mask: Tensor) -> Tensor:
        moment = self.moment(torch.cat([time_values(time), person], 1))
        state = self.enter(torch.cat([values, condition], 2)).float()
        for block in self.blocks:
            state = block(state, mask, moment)
        place = time.reshape(-1, 1, 1)
        power = 1 - 2 * place + 2 * place * place
        return (2 * place - 1) / power * values + self.leave(self.norm(state)).float() / torch.sqrt(power)

    def draw(self, noise: Tensor, condition: Tensor, person: Tensor, mask: Tensor, steps: int, guidance: Tensor | None = None) -> Tensor:
        """`guidance` [values]: 1 keeps to what was learnt; above it, the draw goes further away from one without a condition."""
        values = noise
        for step in range(steps):
            time = torch.full((len(noise),), step / steps)
            velocity = self(values, time, condition, person, mask)
            if guidance is not None:
                without = self(values, time, torch.zeros_like(condition), person, mask)
                velocity = without + guidance * (velocity - without)
            values = values + velocity / steps
        return values


def guidance_of_cepstra() -> Tensor:
    """[CEPSTRA]"""
    share = torch.clamp((torch.arange(CEPSTRA) - LAST_LOW) / (FIRST_HIGH - LAST_LOW), 0, 1)
    return GUIDANCE_LOW + share * (GUIDANCE_HIGH - GUIDANCE_LOW)


class Cepstra(nn.Module):
    """Standardised bands to cepstra of deviation 1, and back."""

    def __init__(self) -> None:
        super().__init__()
        waves = scipy.fft.dct(torch.eye(BANDS).numpy(), axis=1, norm="ortho")[:, :CEPSTRA]
        self.register_buffer("waves", torch.from_numpy(waves.copy()), persistent=False)
        self.register_buffer("deviation", torch.ones(CEPSTRA))

    def forward(self, bands: Tensor) -> Tensor:
        return bands @ self.waves / self.deviation

    def bands(self, cepstra: Tensor) -> Tensor:
        return (cepstra * self.deviation) @ self.waves.T


def rows_between(frames: Tensor) -> Tensor:
    """[B, T, 80] -> [B, 2T, 80]: a row's centre is a quarter of a frame from its frame's."""
    before = torch.cat([frames[:, :1], frames[:, :-1]], 1)
    after = torch.cat([frames[:, 1:], frames[:, -1:]], 1)
    rows = torch.stack([0.75 * frames + 0.25 * before, 0.75 * frames + 0.25 * after], 2)
    return rows.flatten(1, 2)


@dataclass
class Usual:
    """The distribution of each value as far as a condition alone tells it: mean, and ln of the mean distance from it."""

    mean: Tensor
    log_spread: Tensor

    def relative(self, values: Tensor) -> Tensor:
        return (values - self.mean) * torch.exp(-self.log_spread) / DEVIATION_OF_DISTANCE

    def absolute(self, values: Tensor) -> Tensor:
        return self.mean + values * torch.exp(self.log_spread) * DEVIATION_OF_DISTANCE

    def surprise(self, values: Tensor) -> Tensor:
        """Of a Laplace distribution."""
        return (values - self.mean).abs() * torch.exp(-self.log_spread) + self.log_spread


def usual(values: Tensor) -> Usual:
    mean, log_spread = values.float().chunk(2, 2)
    return Usual(mean, torch.clamp(log_spread, LEAST_DISTANCE, MOST_DISTANCE))


@dataclass
class Said:
    """What is to be said."""

    sounds: Tensor  # [B, L, FEATURES]
    symbols: Tensor  # [B, L]
    flags: Tensor  # [B, L, 3]
    place: Tensor  # [B, L, 2]
    style: Tensor  # [B, L, 4]
    phone_mask: Tensor  # [B, L, 1]
    index: Tensor  # [B, T]
    position: Tensor  # [B, T, 4]
    mask: Tensor  # [B, T, 1]
    person: Tensor  # [B]
    language: Tensor  # [B]
    colour: Tensor  # [B, COLOURS]


class PeopleModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.person = nn.Embedding(PEOPLE_MAX, PERSON)
        self.language = nn.Embedding(len(LANGUAGES), LANGUAGE)
        self.symbol = nn.Embedding(SYMBOLS_MAX, HIDDEN)
        nn.init.normal_(self.symbol.weight, std=0.1)
        self.enter_phone = nn.Linear(FEATURES + FLAGS + PLACES + len(STYLES) + LANGUAGE, HIDDEN)
        self.encoder = stack(HIDDEN, ENCODER_KERNEL, ENCODER_DILATIONS, ENCODER_DROPOUT, PERSON)
        self.encoder_norm = nn.LayerNorm(HIDDEN)
        self.duration = nn.Linear(HIDDEN, 2)

        self.enter_pitch = nn.Linear(HIDDEN + POSITIONS, HIDDEN)
        self.pitch_trunk = stack(HIDDEN, TRUNK_KERNEL, PITCH_TRUNK_DILATIONS, FRAME_DROPOUT, PERSON)
        self.pitch_norm = nn.LayerNorm(HIDDEN)
        self.pitch_usual = nn.Linear(HIDDEN, 2 * FRAME_PITCH)
        self.pitch = Velocity(FRAME_PITCH, PITCH_WIDTH, PITCH_KERNEL, PITCH_DILATIONS)

        self.enter_envelope = nn.Linear(HIDDEN + POSITIONS + FRAME_PITCH + COLOURS, HIDDEN)
        self.envelope_trunk = stack(HIDDEN, TRUNK_KERNEL, TRUNK_DILATIONS, FRAME_DROPOUT, PERSON)
        self.envelope_norm = nn.LayerNorm(HIDDEN)
        self.envelope_usual = nn.Linear(HIDDEN, 2 * BANDS)
        self.cepstra = Cepstra()
        self.envelope = Velocity(CEPSTRA, ENVELOPE_WIDTH, ENVELOPE_KERNEL, ENVELOPE_DILATIONS)

    def encode(self, said: Said) -> tuple[Tensor, Tensor, Tensor]:
        """Hidden states [B, L, H], mean and ln deviation of ln duration."""
        person = self.person(said.person)
        language = self.language(said.language).unsqueeze(1).expand(-1, said.symbols.shape[1], -1)
        symbol = self.symbol(said.symbols)
        if self.training:
            symbol = symbol * (torch.rand(*symbol.shape[:2], 1) > SYMBOL_DROPOUT)
        values = self.enter_phone(torch.cat([said.sounds, said.flags, said.place, said.style, language], 2)).float() + symbol
        for block in self.encoder:
            values = block(values, said.phone_mask, person)
        hidden = self.encoder_norm(values)
        duration = self.duration(hidden).float()
        return hidden, duration[:, :, 0], torch.clamp(duration[:, :, 1], LEAST_LOG_SPREAD, MOST_LOG_SPREAD)

    def pitch_condition(self, said: Said, hidden: Tensor) -> tuple[Tensor, Usual]:
        """The condition of F0's flow, and what is usual [B, T, 4]."""
        person = self.person(said.person)
        values = self.enter_pitch(torch.cat([spread_over_frames(hidden, said.index), said.position], 2)).float()
        for block in self.pitch_trunk:
            values = block(values, said.mask, person)
        condition = self.pitch_norm(values)
        return condition, usual(self.pitch_usual(condition))

    def envelope_condition(self, said: Said, hidden: Tensor, pitch: Tensor) -> tuple[Tensor, Usual]:
        """The condition of the envelopes' flow, and what is usual [B, T, 80]. `pitch` [B, T, 4]: standardised ln F0, voicing."""
        person = self.person(said.person)
        colour = said.colour.unsqueeze(1).expand(-1, said.index.shape[1], -1)
        spread = spread_over_frames(hidden, said.index)
        values = self.enter_envelope(torch.cat([spread, said.position, pitch, colour], 2)).float()
        for block in self.envelope_trunk:
            values = block(values, said.mask, person)
        condition = self.envelope_norm(values)
        return condition, usual(self.envelope_usual(condition))

    def draw_envelopes(self, said: Said, hidden: Tensor, pitch: Tensor, steps: int, temperature: float = TEMPERATURE) -> Tensor:
        """Standardised bands [B, T, 80]."""
        condition, _ = self.envelope_condition(said, hidden, pitch)
        noise = temperature * torch.randn(*condition.shape[:2], CEPSTRA)
        drawn = self.envelope.draw(noise, condition, self.person(said.person), said.mask, steps, guidance_of_cepstra())
        return self.cepstra.bands(drawn)
