"""The two nets. Both are stacks of residual convolutions, so that a window of the input gives exactly the output that the
whole would give, once it has the margin of the receptive field at either side."""

import torch
from torch import Tensor, nn

from features import FRAME_VALUES, SPEAKERS
from phones import PHONES

HIDDEN = 192
KERNEL = 5
ENCODER_DILATIONS = (1, 1, 1, 1)  # ±8 phones
FRAME_DILATIONS = (1, 1, 2, 2, 4)  # ±20 frames
TERMINAL_CLASSES = 4
POSITION_FEATURES = 4
PLACE_FEATURES = 2


class ChannelNorm(nn.Module):
    """Layer normalisation over the channels of [batch, channels, time]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1, channels, 1))
        self.bias = nn.Parameter(torch.zeros(1, channels, 1))

    def forward(self, values: Tensor) -> Tensor:
        centred = values - values.mean(1, keepdim=True)
        return centred * torch.rsqrt((centred * centred).mean(1, keepdim=True) + 1e-5) * self.gain + self.bias


class Block(nn.Module):
    """values + Project(ReLU(Conv(Norm(values)))). The mask keeps padding silent, as zero padding at the edges does."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.norm = ChannelNorm(channels)
        padding = dilation * (KERNEL // 2)
        self.conv = nn.Conv1d(channels, channels, KERNEL, padding=padding, dilation=dilation)
        self.project = nn.Conv1d(channels, channels, 1)

    def forward(self, values: Tensor, mask: Tensor | None) -> Tensor:
        normed = self.norm(values)
        if mask is not None:
            normed = normed * mask
        return values + self.project(torch.relu(self.conv(normed)))


class Encoder(nn.Module):
    """Phones to hidden states and log durations."""

    def __init__(self) -> None:
        super().__init__()
        self.phone = nn.Embedding(len(PHONES), HIDDEN)
        self.stress = nn.Embedding(2, HIDDEN)
        self.word_start = nn.Embedding(2, HIDDEN)
        self.terminal = nn.Embedding(TERMINAL_CLASSES, HIDDEN)
        self.speaker = nn.Parameter(torch.randn(len(SPEAKERS), HIDDEN))
        self.place = nn.Conv1d(PLACE_FEATURES, HIDDEN, 1)
        self.blocks = nn.ModuleList([Block(HIDDEN, dilation) for dilation in ENCODER_DILATIONS])
        self.norm = ChannelNorm(HIDDEN)
        self.duration = nn.Conv1d(HIDDEN, 1, 1)

    def forward(self, ids: Tensor, place: Tensor, speaker: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """ids [B, 4, L], place [B, 2, L], speaker [B, 3] weights -> hidden [B, H, L], log duration [B, L]."""
        embedded = self.phone(ids[:, 0]) + self.stress(ids[:, 1]) + self.word_start(ids[:, 2]) + self.terminal(ids[:, 3])
        values = (embedded + (speaker @ self.speaker).unsqueeze(1)).transpose(1, 2) + self.place(place)
        for block in self.blocks:
            values = block(values, mask)
        hidden = self.norm(values)
        return hidden, self.duration(hidden)[:, 0]


class FrameNet(nn.Module):
    """Hidden states spread over frames, and places in the phone, to standardised vocoder parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv1d(HIDDEN + POSITION_FEATURES, HIDDEN, 1)
        self.blocks = nn.ModuleList([Block(HIDDEN, dilation) for dilation in FRAME_DILATIONS])
        self.norm = ChannelNorm(HIDDEN)
        self.leave = nn.Conv1d(HIDDEN, FRAME_VALUES, 1)

    def forward(self, hidden: Tensor, position: Tensor, mask: Tensor | None) -> Tensor:
        """hidden [B, H, T], position [B, 4, T] -> [B, FRAME_VALUES, T]."""
        values = self.enter(torch.cat([hidden, position], 1))
        for block in self.blocks:
            values = block(values, mask)
        return self.leave(self.norm(values))
