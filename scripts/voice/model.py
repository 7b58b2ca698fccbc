"""The acoustic model: phones to durations, F0, voicing, and the spectral envelope of each speaker.

Tensors are [batch, time, channels]: a convolution is then one matrix product over shifted copies, which a CPU does fastest.
Both nets are stacks of residual convolutions, so that a window of the input gives exactly the output that the whole would
give, once it has the margin of the receptive field at either side.
"""

import torch
from torch import Tensor, nn

from dataset import FRAME_ROWS, SPEAKERS, STYLES

PHONES = 41
TERMINAL_CLASSES = 2  # 0 comma or none, 1 the end of a sentence
BANDS = 80
PITCH_VALUES = 2  # ln F0 and voicing
PLACES = 2
POSITIONS = 4
NOISES = 4

HIDDEN = 192
KERNEL = 5
ENCODER_DILATIONS = (1, 1, 1, 1)  # ±8 phones
SHARED_DILATIONS = (1, 1, 2, 2)  # ±12 frames
PITCH_DILATIONS = (4,)  # ±8 frames more
ENVELOPE_DILATIONS = (1, 1, 2)  # ±8 frames more
ENCODER_DROPOUT = 0.15
FRAME_DROPOUT = 0.05
LEAST_LOG_SPREAD, MOST_LOG_SPREAD = -2.5, 0.0  # of a duration


def reach(dilations: tuple[int, ...]) -> int:
    """The receptive field at either side."""
    return KERNEL // 2 * sum(dilations)


class Block(nn.Module):
    """values + Project(ReLU(Conv(Norm(values)))). The mask keeps padding silent, as zero padding at the edges does."""

    def __init__(self, channels: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.conv = nn.Linear(KERNEL * channels, channels)
        self.project = nn.Linear(channels, channels)
        self.dropout = nn.Dropout(dropout)
        self.dilation = dilation
        self.reach = reach((dilation,))

    def forward(self, values: Tensor, mask: Tensor | None, manner: Tensor | None = None) -> Tensor:
        """`manner`: the speaker's scale and shift of the channels, side by side."""
        normed = self.normed(values, manner)
        if mask is not None:
            normed = normed * mask
        if torch.is_autocast_cpu_enabled():
            normed = normed.bfloat16()  # before the copies: half the memory
        return values + self.change(nn.functional.pad(normed, (0, 0, self.reach, self.reach)))

    def normed(self, values: Tensor, manner: Tensor | None) -> Tensor:
        normed = self.norm(values)
        if manner is None:
            return normed
        scale, shift = manner.unsqueeze(1).chunk(2, 2)
        return normed * (1 + scale) + shift

    def change(self, padded: Tensor) -> Tensor:
        """What the block adds; `padded` has `reach` more frames at either side."""
        shifts = [padded[:, tap * self.dilation : (tap + 1 - KERNEL) * self.dilation or None] for tap in range(KERNEL)]
        return self.project(self.dropout(torch.relu(self.conv(torch.cat(shifts, 2))))).float()


def blocks(dilations: tuple[int, ...], dropout: float) -> nn.ModuleList:
    return nn.ModuleList([Block(HIDDEN, dilation, dropout) for dilation in dilations])


class Encoder(nn.Module):
    """Phones and the style of their clauses to hidden states, and to the distribution of each phone's ln duration."""

    def __init__(self) -> None:
        super().__init__()
        sizes = (PHONES, 2, 2, TERMINAL_CLASSES)
        self.embeddings = nn.ModuleList([nn.Embedding(size, HIDDEN) for size in sizes])
        self.place = nn.Linear(PLACES, HIDDEN)
        self.style = nn.Linear(len(STYLES), HIDDEN)
        self.blocks = blocks(ENCODER_DILATIONS, ENCODER_DROPOUT)
        self.norm = nn.LayerNorm(HIDDEN)
        self.duration = nn.Linear(HIDDEN, 2)

    def forward(self, ids: Tensor, place: Tensor, style: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """ids [B, L, 4], place [B, L, 2], style [B, L, 4] -> hidden [B, L, H], mean and ln deviation of ln duration."""
        phone, stress, word_start, terminal = ids.unbind(2)
        # The recordings hardly ask or exclaim: such a clause is a statement in another style.
        known = (phone, stress, word_start, torch.clamp(terminal, max=TERMINAL_CLASSES - 1))
        embedded = sum(embedding(row) for embedding, row in zip(self.embeddings, known))
        values = (embedded + self.place(place) + self.style(style)).float()
        for block in self.blocks:
            values = block(values, mask)
        hidden = self.norm(values)
        duration = self.duration(hidden).float()
        return hidden, duration[:, :, 0], torch.clamp(duration[:, :, 1], LEAST_LOG_SPREAD, MOST_LOG_SPREAD)


class FrameNet(nn.Module):
    """Hidden states spread over frames to standardised rows. The speaker changes nothing but the envelope."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(HIDDEN + POSITIONS + NOISES, HIDDEN)
        self.shared = blocks(SHARED_DILATIONS, FRAME_DROPOUT)
        self.pitch_blocks = blocks(PITCH_DILATIONS, FRAME_DROPOUT)
        self.pitch = nn.Sequential(nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, FRAME_ROWS * PITCH_VALUES))
        self.envelope_blocks = blocks(ENVELOPE_DILATIONS, FRAME_DROPOUT)
        self.manners = nn.ModuleList([nn.Linear(len(SPEAKERS), 2 * HIDDEN, bias=False) for _ in ENVELOPE_DILATIONS])
        self.colour = nn.Linear(len(SPEAKERS), BANDS, bias=False)  # each speaker's own long-term spectrum
        self.envelope = nn.Sequential(nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, FRAME_ROWS * BANDS))
        for linear in (*self.manners, self.colour):
            nn.init.zeros_(linear.weight)

    def trunk(self, spread: Tensor, position: Tensor, noise: Tensor, mask: Tensor | None) -> Tensor:
        values = self.enter(torch.cat([spread, position, noise], 2)).float()
        for block in self.shared:
            values = block(values, mask)
        return values

    def pitch_rows(self, values: Tensor, mask: Tensor | None) -> Tensor:
        """Of the trunk's values: standardised ln F0 and the logit of voicing, [B, 2T, 2]."""
        for block in self.pitch_blocks:
            values = block(values, mask)
        return self.pitch(values).float().reshape(values.shape[0], -1, PITCH_VALUES)

    def envelope_rows(self, values: Tensor, speaker: Tensor, mask: Tensor | None) -> Tensor:
        """Of the trunk's values, and the weights of the speakers [B, S]: standardised bands [B, 2T, 80]."""
        for block, manner in zip(self.envelope_blocks, self.manners):
            values = block(values, mask, manner(speaker).float())
        bands = self.envelope(values).float().reshape(values.shape[0], -1, BANDS)
        return bands + self.colour(speaker).float().unsqueeze(1)


class AcousticModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.frame_net = FrameNet()


def spread_over_frames(hidden: Tensor, index: Tensor) -> Tensor:
    """Each frame's hidden state: of [B, L, H], by the phones of the frames [B, T]."""
    return torch.gather(hidden, 1, index.unsqueeze(2).expand(-1, -1, hidden.shape[2]))
