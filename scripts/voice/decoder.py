"""The decoder: F0, voicing and 80 log bands to audio. One module serves training and, exported as ONNX, the service.

Pulses at F0 (band-limited, so that they do not alias) and noise, whose amplitude follows the pulses' phase, go through a filter
each. A row's filters are its own envelope plus corrections that a small net predicts from the rows around it; the pulses' filter
is minimum phase plus a learned dispersion. Both work in the frequency domain, and their responses are overlap-added.

Row r is centred on sample 120 r + 60. Its window reaches from the centre of the row before to the centre of the row after: so
chunk r of the pulses and of the noise begins at the centre of row r. A row's response begins 240 samples before its centre, so
audio leaves the decoder 180 samples (7.5 ms) after its row began.
"""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

SAMPLE_RATE = 24000
HOP = 120
BANDS = 80
ALL_PASS = 0.466  # mel-like frequency warping of the bands
CONTEXT = 4  # rows at either side that the net sees
TRANSFORM = 720  # three times the window, so that the filters have room to ring: 15 ms after it, 5 ms before it
LEAD = 2 * HOP  # from where a row's response begins to the row's centre
DELAY = LEAD - HOP // 2
PULSES = HOP  # lengths of the state
NOISE = HOP
TAIL = TRANSFORM - HOP
FADE = HOP // 2  # at either end of a row's response
QUARTER = TRANSFORM // 4

HIDDEN = 192
DISPERSION = 40  # coefficients of the learned phase
MODULATION = 4  # cosine and sine of the pulses' phase and of its double
CORRECTION = 2.0  # the net's outputs count twice, which speeds up its training
LOG_F0_RANGE = (4.6, 5.9)  # beyond it (100 to 365 Hz) the net, which knows one person, hears the nearest F0 that it knows
LOG_F0_CENTRE, LOG_F0_SCALE = 5.15, 4.0
HIGHEST_LOG_AMPLITUDE = 6.0
WARPED_UNTIL = 7000 * 2 * np.pi / SAMPLE_RATE

NOISE_ROWS = 1024  # 5 s of noise, then it repeats
NOISE_STEPS = 32  # of one deviation: noise is kept in bytes
HIGHEST_HARMONIC_HZ = 11900.0
PHASE_STEPS = 2.0**24


def to_phase_steps(turns: Tensor) -> Tensor:
    """Double-precision turns, rounded to steps that survive in float32."""
    return torch.floor(turns.double() * PHASE_STEPS + 0.5) / PHASE_STEPS


def to_mel(radians: Tensor, all_pass: float) -> Tensor:
    """The all-pass frequency axis; its inverse with the opposite sign."""
    return radians + 2 * torch.atan(all_pass * torch.sin(radians) / (1 - all_pass * torch.cos(radians)))


class Taps(nn.Module):
    """A convolution over rows without padding, as one product: [B, R + taps - 1, inputs] -> [B, R, outputs]."""

    def __init__(self, inputs: int, outputs: int, taps: int) -> None:
        super().__init__()
        self.taps = taps
        self.linear = nn.Linear(taps * inputs, outputs)

    def forward(self, rows: Tensor) -> Tensor:
        last = self.taps - 1
        shifted = [rows[:, tap : tap - last] if tap < last else rows[:, tap:] for tap in range(self.taps)]
        return self.linear(torch.cat(shifted, 2))


def activate(values: Tensor) -> Tensor:
    return nn.functional.leaky_relu(values, 0.1)


class Decoder(nn.Module):
    """All matrices are formulas in the graph, and the runtime folds them into constants when it loads the file."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = Taps(BANDS + 2, HIDDEN, 5)
        self.middle = Taps(HIDDEN, HIDDEN, 3)
        self.last = Taps(HIDDEN, HIDDEN, 3)
        self.modulation = nn.Linear(HIDDEN, MODULATION)
        self.corrections = nn.Linear(HIDDEN, 2 * BANDS + DISPERSION)
        for layer in (self.modulation, self.corrections):
            nn.init.normal_(layer.weight, std=0.002)
            nn.init.zeros_(layer.bias)
        self.pulse_level = nn.Parameter(torch.linspace(0, -1, BANDS))
        self.noise_voiced = nn.Parameter(torch.linspace(-3, -0.7, BANDS))
        self.noise_unvoiced = nn.Parameter(torch.zeros(BANDS))
        self.dispersion = nn.Parameter(torch.zeros(DISPERSION))
        # Of the recordings' bands.
        self.register_buffer("mean", torch.zeros(BANDS))
        self.register_buffer("deviation", torch.ones(BANDS))
        fade = 0.5 - 0.5 * torch.cos(np.pi / FADE * (torch.arange(FADE) + 0.5))
        table = np.random.RandomState(7).randn(NOISE_ROWS, HOP) * NOISE_STEPS
        constants = {
            "noise_table": torch.from_numpy(np.clip(np.round(table), -127, 127).astype(np.int8)),
            "integers": torch.arange(TRANSFORM),
            "orders": torch.arange(BANDS, dtype=torch.float32),
            "end_halves": torch.tensor([0.5] + [1.0] * (BANDS - 2) + [0.5]),
            "bin_scale": torch.tensor([1.0] + [2.0] * (QUARTER - 1) + [1.0]).unsqueeze(1) / TRANSFORM,
            "window": 0.5 + 0.5 * torch.cos(np.pi / HOP * torch.arange(HOP)) - 0.5 * (torch.arange(HOP) == 0),
            "ramp": torch.arange(HOP, dtype=torch.float32) / HOP,
            "fades": torch.cat([fade, torch.ones(TRANSFORM - 2 * FADE), torch.flip(fade, [0])]),
        }
        for name, value in constants.items():
            self.register_buffer(name, value)

    def angles(self, samples: Tensor) -> Tensor:
        """[samples, QUARTER + 1]: 2 pi n k / N, reduced as integers, so that float32 is exact enough."""
        product = torch.remainder(samples.unsqueeze(1) * self.integers[: QUARTER + 1], TRANSFORM)
        return product.float() * (2 * np.pi / TRANSFORM)

    def spectrum(self, chunks: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """Windowed spectra (real, imaginary) of rows, with phase zero at the row's centre.

        `chunks` [..., R, 120] begin at each row's centre; `before` [..., 1, 120] is the chunk before the first. Bins come as
        k = 0..180 and then 360 - k. Folding at the centre into an even and an odd part halves the products.
        """
        previous = torch.cat([before, chunks[..., :-1, :]], -2)
        earlier = torch.cat([chunks[..., :1], torch.flip(previous[..., 1:], [-1])], -1)
        samples = self.integers[:HOP]
        angles = self.angles(samples)
        sign = (1 - 2 * torch.remainder(samples, 2).float()).unsqueeze(1)  # bin 360 - k turns by pi more for each sample
        window = self.window.unsqueeze(1)
        cosine, sine = window * torch.cos(angles), window * torch.sin(angles)
        real = (chunks + earlier) @ torch.cat([cosine, sign * cosine], 1)
        return real, (earlier - chunks) @ torch.cat([sine, -sign * sine], 1)

    def signal(self, real: Tensor, imaginary: Tensor) -> Tensor:
        """[B, R, 720] samples of spectra with bins as above, from LEAD samples before the centre on.

        Even and odd samples apart: for one, bins k and 360 - k have equal waves, for the other opposite ones. Both ends fade:
        a sharp resonance still rings there, and its end would click at the edge of a row.
        """
        half = QUARTER + 1
        even, odd = (self.angles(self.integers[first : 2 * half : 2]).transpose(0, 1) for first in (0, 1))
        low, high = real[..., :half], real[..., half:]
        cosine = (low + high) @ (torch.cos(even) * self.bin_scale), (low - high) @ (torch.cos(odd) * self.bin_scale)
        low, high = imaginary[..., :half], imaginary[..., half:]
        sine = (low - high) @ (torch.sin(even) * self.bin_scale), (low + high) @ (torch.sin(odd) * self.bin_scale)
        symmetric = torch.stack(cosine, -1).flatten(-2)  # samples 0..361 from the centre on
        antisymmetric = torch.stack(sine, -1).flatten(-2)
        after, before = symmetric - antisymmetric, torch.flip(symmetric + antisymmetric, [-1])
        end = 2 * half - 1  # `before` begins with sample -361, which is also 359: the transform is circular
        middle = TRANSFORM // 2
        return torch.cat([before[..., end - LEAD : end], after[..., : middle + 1], before[..., 2 : end - LEAD]], -1) * self.fades

    def filters(self, pulse_bands: Tensor, noise_bands: Tensor, dispersion: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The pulses' filter (real, imaginary) and the noise's, at the bins of `spectrum`.

        The bands' cosine series interpolates them; its coefficients are the cepstrum, whose sines are the minimum phase.
        """
        bins = self.integers[: QUARTER + 1].float() * (2 * np.pi / TRANSFORM)
        mel = to_mel(torch.cat([bins, np.pi - bins]), ALL_PASS)
        grid = torch.cos(self.orders.unsqueeze(1) * self.orders * (np.pi / (BANDS - 1)))
        cepstra = grid * self.end_halves * self.end_halves.unsqueeze(1) * (2 / (BANDS - 1))
        waves = self.orders.unsqueeze(1) * mel
        level = cepstra @ torch.cos(waves)
        amplitude = torch.exp(torch.clamp(pulse_bands @ level, max=HIGHEST_LOG_AMPLITUDE))
        angle = pulse_bands @ (cepstra @ torch.sin(waves)) + dispersion @ torch.sin(waves[1 : DISPERSION + 1])
        noise = torch.exp(torch.clamp(noise_bands @ level, max=HIGHEST_LOG_AMPLITUDE))
        return amplitude * torch.cos(angle), amplitude * -torch.sin(angle), noise

    def warping(self, warp: Tensor) -> Tensor:
        """[BANDS, BANDS]: reads bands at `warp` times their frequency, by cubic interpolation.

        Only up to a limit: from there on the factor changes so that the last band stays where it is, else the spectrum would
        end too early, or lose its end.
        """
        radians = to_mel(self.orders * (np.pi / (BANDS - 1)), -ALL_PASS)
        above = np.pi - (np.pi - radians) * (np.pi - WARPED_UNTIL * warp) / (np.pi - WARPED_UNTIL)
        place = to_mel(torch.where(radians < WARPED_UNTIL, radians * warp, above), ALL_PASS) * ((BANDS - 1) / np.pi)
        distance = torch.abs(place.unsqueeze(0) - self.orders.unsqueeze(1))
        near = (1.5 * distance - 2.5) * distance * distance + 1
        far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
        weight = torch.where(distance < 1, near, torch.where(distance < 2, far, torch.zeros_like(far)))
        return weight / weight.sum(0, keepdim=True)

    def net(self, bands: Tensor, log_f0: Tensor, voiced: Tensor) -> tuple[Tensor, Tensor]:
        """[B, R + 8, ..] -> corrections [B, R, ..], and modulation [B, R + 1, 4] of rows and of the row after them."""
        pitch = (torch.clamp(log_f0, *LOG_F0_RANGE) - LOG_F0_CENTRE) * LOG_F0_SCALE
        values = torch.cat([(bands - self.mean) / self.deviation, pitch.unsqueeze(2), voiced.unsqueeze(2)], 2)
        values = activate(self.enter(values))
        values = values[:, 1:-1] + activate(self.middle(values))
        modulation = torch.tanh(self.modulation(values[:, 1:]))
        values = values[:, 1:-1] + activate(self.last(values))
        return self.corrections(values), modulation

    def pulses(self, f0: Tensor, voiced: Tensor, modulation: Tensor, phase: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The pulse train and the noise's amplitude in chunks [B, R, 120], and the phase after them; all from R + 1 rows.

        A row's phase is rounded to a multiple of 2^-24 turns, and summed in double precision: so it is exact, and passes
        through the float32 state unchanged. Sums in single precision drift apart between chunks and whole.
        """
        first, step = f0[:, :-1].unsqueeze(2), (f0[:, 1:] - f0[:, :-1]).unsqueeze(2)
        cycles = (first + step * self.ramp) / SAMPLE_RATE
        within = (first + 0.5 * step * self.ramp) * self.ramp * (HOP / SAMPLE_RATE)
        row_cycles = to_phase_steps((f0[:, :-1].double() + f0[:, 1:].double()) * (0.5 * HOP / SAMPLE_RATE))
        ends = torch.cumsum(row_cycles, 1) + to_phase_steps(phase)
        starts = ends - row_cycles
        turn = (starts - torch.floor(starts)).float().unsqueeze(2) + within
        # From -0.5 to 0.5: near the pulse, at 0, small numbers keep the quotient below exact.
        turn = turn - torch.floor(turn + 0.5)
        # 1 + 2 cos(x) + ... + 2 cos(K x) in closed form: all harmonics below the limit, and none above.
        harmonics = 2 * torch.floor(HIGHEST_HARMONIC_HZ / SAMPLE_RATE / cycles) + 1
        sine = torch.sin(np.pi * turn)
        near_zero = torch.abs(sine) < 1e-6
        ratio = torch.sin(harmonics * np.pi * turn) / torch.where(near_zero, torch.ones_like(sine), sine)
        # Voicing fades within a row: a pulse cut in two would click.
        fade = voiced[:, :-1].unsqueeze(2) + (voiced[:, 1:] - voiced[:, :-1]).unsqueeze(2) * self.ramp
        train = torch.where(near_zero, harmonics, ratio) * torch.sqrt(cycles) * fade

        cos_1 = 1 - 2 * sine * sine
        sin_1 = 2 * sine * torch.sqrt(torch.clamp(1 - sine * sine, min=0))
        waves = (cos_1, sin_1, 2 * cos_1 * cos_1 - 1, 2 * sin_1 * cos_1)
        depth, change = modulation[:, :-1], modulation[:, 1:] - modulation[:, :-1]
        swing = sum(
            (depth[..., k : k + 1] + change[..., k : k + 1] * self.ramp) * wave for k, wave in enumerate(waves)
        )
        end = ends[:, -1:]
        return train, 1 + fade * swing, (end - torch.floor(end)).float()

    def forward(
        self,
        f0: Tensor,
        voiced: Tensor,
        bands: Tensor,
        noise: Tensor,
        state: tuple[Tensor, Tensor, Tensor],
        warp: Tensor | None = None,
        log_f0_error: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        """f0, voiced (0 or 1) [B, R + 8], bands [B, R + 8, 80], noise [B, R, 120] -> samples [B, 120 R], state.

        State: phase [B, 1], the last chunk of pulses and noise [B, 2, 1, 120], tail [B, TAIL]. `log_f0_error` [B, 1] is for
        training: the net may not rely on the exact F0, because other voices have theirs lower or higher.
        """
        phase, sources_before, tail = state
        log_f0 = torch.log(f0)
        corrections, modulation = self.net(bands, log_f0 if log_f0_error is None else log_f0 + log_f0_error, voiced)
        core = slice(CONTEXT, -CONTEXT)
        with_next = slice(CONTEXT, 1 - CONTEXT)
        train, amplitude, phase = self.pulses(f0[:, with_next], voiced[:, with_next], modulation, phase)
        sources = torch.stack([train, noise * amplitude], 1)
        real, imaginary = self.spectrum(sources, sources_before)

        own, voicing = bands[:, core], voiced[:, core].unsqueeze(2)
        pulse_bands = own + self.pulse_level + CORRECTION * corrections[..., :BANDS]
        level = self.noise_unvoiced + voicing * (self.noise_voiced - self.noise_unvoiced)
        noise_bands = own + level + CORRECTION * corrections[..., BANDS : 2 * BANDS]
        if warp is not None:
            warping = self.warping(warp)
            pulse_bands, noise_bands = pulse_bands @ warping, noise_bands @ warping
        dispersion = self.dispersion + corrections[..., 2 * BANDS :]
        filter_real, filter_imaginary, noise_filter = self.filters(pulse_bands, noise_bands, dispersion)
        spoken = self.signal(
            real[:, 0] * filter_real - imaginary[:, 0] * filter_imaginary + real[:, 1] * noise_filter,
            real[:, 0] * filter_imaginary + imaginary[:, 0] * filter_real + imaginary[:, 1] * noise_filter,
        )

        after = TAIL // HOP
        mixed = sum(
            nn.functional.pad(spoken[..., HOP * piece : HOP * (piece + 1)], (0, 0, piece, after - piece))
            for piece in range(after + 1)
        )
        mixed = torch.cat([mixed[:, :after] + tail.reshape(-1, after, HOP), mixed[:, after:]], 1)
        return mixed[:, :-after].flatten(1), (phase, sources[:, :, -1:], mixed[:, -after:].flatten(1))


class DecoderGraph(nn.Module):
    """The decoder for one stream, with noise from the table: what the service runs."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(
        self,
        f0: Tensor,
        voicing: Tensor,
        bands: Tensor,
        phase: Tensor,
        pulses: Tensor,
        noise: Tensor,
        tail: Tensor,
        frame_index: Tensor,
        warp: Tensor,
    ) -> tuple[Tensor, ...]:
        rows = f0.shape[0] - 2 * CONTEXT
        index = torch.remainder(frame_index + torch.arange(rows), NOISE_ROWS)
        fresh = self.decoder.noise_table[index].float() / NOISE_STEPS
        state = phase.unsqueeze(0), torch.stack([pulses, noise]).reshape(1, 2, 1, HOP), tail.unsqueeze(0)
        voiced = (voicing > 0.5).float()
        pcm, (phase, sources, tail) = self.decoder(
            f0.unsqueeze(0), voiced.unsqueeze(0), bands.unsqueeze(0), fresh.unsqueeze(0), state, warp
        )
        following = torch.remainder(frame_index + rows, NOISE_ROWS)
        return pcm[0], phase[0], sources[0, 0, 0], sources[0, 1, 0], tail[0], following


INPUTS = ["f0", "voicing", "bands", "phase", "pulses", "noise", "tail", "frameIndex", "warp"]
OUTPUTS = ["pcm", "phaseOut", "pulsesOut", "noiseOut", "tailOut", "frameIndexOut"]


def first_state() -> tuple[Tensor, ...]:
    """phase, pulses, noise, tail and frameIndex before the first row."""
    return torch.zeros(1), torch.zeros(PULSES), torch.zeros(NOISE), torch.zeros(TAIL), torch.zeros(1, dtype=torch.int64)


def load_decoder(path: Path) -> Decoder:
    decoder = Decoder()
    decoder.load_state_dict(torch.load(path, weights_only=False)["model"])
    return decoder.eval()


def export_decoder(path: Path, checkpoint: Path) -> None:
    rows = 48 + 2 * CONTEXT
    example = (torch.full((rows,), 150.0), torch.ones(rows), torch.zeros(rows, BANDS))
    torch.onnx.export(
        DecoderGraph(load_decoder(checkpoint)).eval(),
        (*example, *first_state(), torch.ones(1)),
        str(path),
        input_names=INPUTS,
        output_names=OUTPUTS,
        opset_version=15,
        do_constant_folding=False,  # the runtime folds; in the file the matrices would be 1 MB
        dynamic_axes={**{name: {0: "rows"} for name in INPUTS[:3]}, "pcm": {0: "samples"}},
    )


def decode(
    decoder: Decoder, f0: NDArray[np.float32], voicing: NDArray[np.float32], bands: NDArray[np.float32], warp: float = 1.0
) -> NDArray[np.float32]:
    """A whole utterance's samples, as the service would play them: without the delay, as long as its rows."""
    rows = [torch.from_numpy(np.concatenate([[x[0]] * CONTEXT, x, [x[-1]] * CONTEXT]).astype(np.float32)) for x in (f0, voicing, bands)]
    with torch.no_grad():
        pcm, _, _, _, tail, _ = DecoderGraph(decoder)(*rows, *first_state(), torch.tensor([warp]))
    return torch.cat([pcm, tail])[DELAY : DELAY + len(pcm)].numpy()
