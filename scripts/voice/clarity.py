"""A net that names the phone of each row of an envelope. It learns this from what the speakers really said.

The acoustic model then learns to be understood by it, in the person's voice and in mixtures of all speakers. Meanwhile the
discriminators keep its envelopes like the person's.
"""

import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from batches import Batch
from dataset import FRAME_ROWS
from model import BANDS, PHONES, PITCH_VALUES
from phonemes import PHONE

STEPS = 700
RATE = 1.5e-3
CHANNELS = 192
KERNELS = (9, 7, 5)  # ±9 rows, or 45 ms
DROPOUT = 0.2
LABEL_SMOOTHING = 0.05
LEAST_WARP, MOST_WARP = 0.88, 1.12  # of the bands: vocal tracts of many lengths
REPORT_STEPS = 100


class PhoneJudge(nn.Module):
    """Standardised bands [B, R, 80] -> the logit of each phone [B, R, P]. The long-term spectrum of an utterance does not count."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        size = BANDS
        for kernel in KERNELS:
            layers += [nn.Conv1d(size, CHANNELS, kernel, padding=kernel // 2), nn.ReLU(), nn.Dropout(DROPOUT)]
            size = CHANNELS
        self.layers = nn.Sequential(*layers, nn.Conv1d(size, PHONES, 1))

    def forward(self, bands: Tensor, row_mask: Tensor) -> Tensor:
        mask = row_mask.unsqueeze(2)
        mean = (bands * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)
        return self.layers(((bands - mean) * mask).transpose(1, 2)).transpose(1, 2).float()


def phones_of(batch: Batch) -> Tensor:
    """The phone of each row [B, R]."""
    phones = torch.gather(batch.ids[:, :, PHONE], 1, batch.index)
    return phones.repeat_interleave(FRAME_ROWS, 1)


def unclarity(judge: PhoneJudge, bands: Tensor, batch: Batch, consonant_weight: float = 0, smoothing: float = 0) -> Tensor:
    """How far the net is from naming the phones: the mean cross entropy of a row."""
    logits = judge(bands, batch.row_mask)
    surprise = nn.functional.cross_entropy(logits.transpose(1, 2), phones_of(batch), reduction="none", label_smoothing=smoothing)
    weight = batch.row_mask * (1 + consonant_weight * batch.consonants)
    return (surprise * weight).sum() / weight.sum()


def warped(bands: Tensor, factors: Tensor) -> Tensor:
    """Bands [B, R, 80] of vocal tracts that are shorter by these factors [B]."""
    places = (torch.arange(BANDS) / factors.unsqueeze(1)).clamp(max=BANDS - 1)  # [B, 80]
    low = places.long().clamp(max=BANDS - 2)
    share = (places - low).unsqueeze(1)
    low = low.unsqueeze(1).expand(-1, bands.shape[1], -1)
    return torch.gather(bands, 2, low) * (1 - share) + torch.gather(bands, 2, low + 1) * share


def train_judge(batches: Iterator[Batch], unseen: list[Batch]) -> PhoneJudge:
    """Learns from what all speakers said. Reports the loss of the latest steps, and how many rows of the unseen it names."""
    judge = PhoneJudge()
    optimiser = torch.optim.Adam(judge.parameters(), lr=RATE)
    started, losses = time.monotonic(), []
    judge.train()
    for step in range(1, STEPS + 1):
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1 - 0.95 * step / STEPS)
        batch = next(batches)
        factors = torch.empty(len(batch.ids)).uniform_(LEAST_WARP, MOST_WARP)
        with torch.autocast("cpu", torch.bfloat16):
            loss = unclarity(judge, warped(batch.rows[:, :, PITCH_VALUES:], factors), batch, smoothing=LABEL_SMOOTHING)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        if step % REPORT_STEPS == 0 or step == STEPS:
            recent = sum(losses[-REPORT_STEPS:]) / len(losses[-REPORT_STEPS:])
            right = named(judge, unseen)
            print(f"phones {step}, {time.monotonic() - started:.0f} s: {recent:.3f}; held out {right:.1f} % of the rows right", flush=True)
    return judge.eval().requires_grad_(False)


def named(judge: PhoneJudge, batches: list[Batch]) -> float:
    """The per cent of rows whose phone the net names."""
    judge.eval()
    right = rows = 0.0
    with torch.no_grad():
        for batch in batches:
            found = judge(batch.rows[:, :, PITCH_VALUES:], batch.row_mask).argmax(2) == phones_of(batch)
            right += float((found * batch.row_mask).sum())
            rows += float(batch.row_mask.sum())
    judge.train()
    return 100 * right / rows
