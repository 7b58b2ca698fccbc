"""Envelopes that are drawn, not averaged: conditional flow matching on the 80 bands.

A net with the least error gives the mean of all that could be said. This one learns the distribution instead: it moves noise to
envelopes along straight lines, in a few steps. It knows the phones, where in its phone a frame is, F0 and voicing.

Tensors are [batch, time, channels]. All fields are finite, and noise belongs to a frame: so a window gives what the whole gives.
"""

import math

import torch
from torch import Tensor, nn

from model import BANDS, POSITIONS, Encoder, spread_over_frames
from dataset import FRAME_ROWS

FRAME_VALUES = FRAME_ROWS * BANDS
PITCH = FRAME_ROWS * 2
CONDITION = 192
WIDTH = 256
COLOURS = 6  # of a recording: level and long-term spectrum
TRUNK_KERNEL, TRUNK_DILATIONS = 5, (1, 1, 2, 2)  # ±12 frames
FLOW_KERNEL, FLOW_DILATIONS = 3, (1, 1, 2, 1)  # ±5 frames for each step
TIME_VALUES = 32
DROPOUT = 0.05


class Convolution(nn.Module):
    """values + Project(SiLU(Conv(Norm(values)))), with a scale and a shift of the normed values."""

    def __init__(self, channels: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.conv = nn.Linear(kernel * channels, channels)
        self.project = nn.Linear(channels, channels)
        self.dropout = nn.Dropout(DROPOUT)
        self.kernel, self.dilation = kernel, dilation
        self.reach = kernel // 2 * dilation

    def forward(self, values: Tensor, mask: Tensor, manner: Tensor | None = None) -> Tensor:
        normed = self.norm(values)
        if manner is not None:
            scale, shift = manner.unsqueeze(1).chunk(2, 2)
            normed = normed * (1 + scale) + shift
        normed = normed * mask
        if torch.is_autocast_cpu_enabled():
            normed = normed.bfloat16()
        padded = nn.functional.pad(normed, (0, 0, self.reach, self.reach))
        shifts = [padded[:, tap * self.dilation : (tap + 1 - self.kernel) * self.dilation or None] for tap in range(self.kernel)]
        return values + self.project(self.dropout(nn.functional.silu(self.conv(torch.cat(shifts, 2))))).float()


class Trunk(nn.Module):
    """What is to be said, frame by frame: the condition of the flow, and the mean of the envelopes."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.enter = nn.Linear(CONDITION + POSITIONS + PITCH + COLOURS, CONDITION)
        self.blocks = nn.ModuleList([Convolution(CONDITION, TRUNK_KERNEL, dilation) for dilation in TRUNK_DILATIONS])
        self.norm = nn.LayerNorm(CONDITION)
        self.mean = nn.Linear(CONDITION, FRAME_VALUES)

    def forward(self, ids, place, style, phone_mask, index, position, pitch, colour, mask) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        hidden, log_durations, log_spreads = self.encoder(ids, place, style, phone_mask)
        colours = colour.unsqueeze(1).expand(-1, index.shape[1], -1)
        values = self.enter(torch.cat([spread_over_frames(hidden, index).float(), position, pitch, colours], 2)).float()
        for block in self.blocks:
            values = block(values, mask)
        condition = self.norm(values)
        return condition, self.mean(condition).float(), log_durations, log_spreads


def time_values(time: Tensor) -> Tensor:
    """[B] -> [B, TIME_VALUES]"""
    rates = torch.exp(torch.arange(TIME_VALUES // 2) * (math.log(50.0) / (TIME_VALUES // 2 - 1)))
    angles = time.unsqueeze(1) * rates * math.pi
    return torch.cat([torch.cos(angles), torch.sin(angles)], 1)


class Velocity(nn.Module):
    """Where a draw at `time` is moving to: [B, T, 160]."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(FRAME_VALUES + CONDITION, WIDTH)
        self.time = nn.Sequential(nn.Linear(TIME_VALUES, 128), nn.SiLU())
        self.blocks = nn.ModuleList([Convolution(WIDTH, FLOW_KERNEL, dilation) for dilation in FLOW_DILATIONS])
        self.manners = nn.ModuleList([nn.Linear(128, 2 * WIDTH) for _ in FLOW_DILATIONS])
        self.norm = nn.LayerNorm(WIDTH)
        self.leave = nn.Linear(WIDTH, FRAME_VALUES)
        for linear in (*self.manners, self.leave):
            nn.init.zeros_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, values: Tensor, time: Tensor, condition: Tensor, mask: Tensor) -> Tensor:
        moment = self.time(time_values(time))
        state = self.enter(torch.cat([values, condition], 2)).float()
        for block, manner in zip(self.blocks, self.manners):
            state = block(state, mask, manner(moment).float())
        return self.leave(self.norm(state)).float()


class EnvelopeFlow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = Trunk()
        self.velocity = Velocity()

    def draw(self, noise: Tensor, condition: Tensor, mask: Tensor, steps: int, midpoint: bool = False) -> Tensor:
        """Standardised frames [B, T, 160] of noise of that shape."""
        values = noise
        for step in range(steps):
            time = torch.full((len(noise),), step / steps)
            change = self.velocity(values, time, condition, mask)
            if midpoint:
                change = self.velocity(values + change * (0.5 / steps), time + 0.5 / steps, condition, mask)
            values = values + change / steps
        return values
