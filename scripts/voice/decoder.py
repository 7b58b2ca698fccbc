"""The decoder: vocoder parameters to audio. It has no trained weights; as an ONNX graph it runs wherever the nets do.

Each 5 ms row: pulses at F0 (band-limited, so that they do not alias) and noise, mixed in five bands by their strengths, go
through the minimum-phase filter that the mel-cepstrum describes, in the frequency domain, and are overlap-added.

Delay: a row's window reaches 360 samples back, so pulses leave the decoder 360 samples (15 ms) after their row began.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from features import ALL_PASS, BANDS, CEPSTRA

SAMPLE_RATE = 24000
TEACHER_RATE = 16000
HOP = 120
WINDOW = 480
TRANSFORM = 960  # twice the window, so that the filter has room to ring
BINS = TRANSFORM // 2 + 1
CENTRE = WINDOW // 2
DELAY = WINDOW - HOP  # 360
TAIL = TRANSFORM - HOP  # 840
NOISE_ROWS = 1024  # 5 s of noise, then it repeats
GAIN = 1.5 / 32768  # the teacher's cepstra are for 16-bit samples
HIGHEST_HARMONIC_HZ = 11900.0
PHASE_STEPS = 2.0**24
# The teacher's envelope drops steeply towards its end at 8 kHz, which would be heard as a wall: it is read up to 7.1 kHz,
# and continued from there with a fall of 11 dB a kilohertz.
ROLL_OFF_KHZ = 7.1
ROLL_OFF = 1.25


def band_shapes(filters: np.ndarray) -> np.ndarray:
    """[5, BINS]: how much of each bin belongs to each band; from 7 kHz on more and more of it is always noise."""
    response = np.abs(np.fft.rfft(filters, 8192, axis=1))
    frequency = np.arange(BINS) * SAMPLE_RATE / TRANSFORM
    known = np.fft.rfftfreq(8192, 1 / TEACHER_RATE)
    shapes = np.stack([np.interp(np.minimum(frequency, 7999), known, row) for row in response])
    return shapes / shapes.sum(0) * (1 - np.clip((frequency - 7000) / 1000, 0, 1))


def to_phase_steps(turns: Tensor) -> Tensor:
    """Double-precision turns, rounded to steps that survive in float32."""
    return torch.floor(turns.double() * PHASE_STEPS + 0.5) / PHASE_STEPS


class Decoder(nn.Module):
    """Everything in it that does not depend on `warp` is folded into constants when the runtime loads the graph: kept as
    formulas in the file, which is then 0.5 MB instead of 8."""

    def __init__(self, filters: np.ndarray) -> None:
        super().__init__()
        window = 0.5 * np.hanning(WINDOW + 1)[CENTRE:WINDOW]  # its right half; hop = window / 4, so windows sum to 1
        window[0] /= 2  # the centre sample is its own mirror image, and is counted twice
        doubled = np.full(BINS, 2.0)  # each bin but the first and last stands for its conjugate too
        doubled[[0, -1]] = 1
        noise = np.random.RandomState(7).randn(NOISE_ROWS * HOP)
        constants = {
            "window": window,
            "inverse_scale": doubled / TRANSFORM,
            "bands": band_shapes(filters),
            "noise": np.concatenate([noise, noise[: WINDOW - HOP]]),
            "ramp": (np.arange(HOP) + 1) / HOP,
            "bin_radians": np.arange(BINS) * SAMPLE_RATE / TRANSFORM * 2 * np.pi / TEACHER_RATE,
            "bin_khz": np.arange(BINS) * SAMPLE_RATE / TRANSFORM / 1000,
            "orders": np.arange(CEPSTRA),
        }
        for name, value in constants.items():
            self.register_buffer(name, torch.tensor(value, dtype=torch.float32))
        self.register_buffer("samples", torch.arange(BINS))
        self.register_buffer("rows", torch.arange(NOISE_ROWS))

    def angles(self, count: int) -> Tensor:
        """[count, BINS]: 2 pi n k / N, reduced as integers so that float32 is exact enough."""
        product = self.samples[:count].unsqueeze(1) * self.samples.unsqueeze(0)
        return torch.remainder(product, TRANSFORM).float() * (2 * np.pi / TRANSFORM)

    def spectrum(self, signal: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        """Windowed spectra of a signal's rows (real, imaginary), with phase zero at the window's centre.

        Folding the window at its centre into an even and an odd part halves the matrix products.
        """
        length = rows * HOP
        windows = torch.cat([signal[k * HOP : k * HOP + length].reshape(rows, HOP) for k in range(WINDOW // HOP)], 1)
        later = windows[:, CENTRE:]
        earlier = torch.flip(windows[:, 1 : CENTRE + 1], [1])
        angles = self.angles(CENTRE)
        weight = self.window.unsqueeze(1)
        return (later + earlier) @ (torch.cos(angles) * weight), (earlier - later) @ (torch.sin(angles) * weight)

    def signal(self, real: Tensor, imaginary: Tensor) -> Tensor:
        """[rows, TRANSFORM] samples of a spectrum, from the window's first sample on."""
        angles = self.angles(BINS).transpose(0, 1)
        scale = self.inverse_scale.unsqueeze(1)
        even = real @ (torch.cos(angles) * scale)
        odd = imaginary @ (torch.sin(angles) * -scale)
        after = even + odd  # sample n = 0..480 from the centre on
        before = torch.flip(even - odd, [1])  # n = -480..0, which is also n = 480..960: the transform is circular
        middle = BINS - 1
        return torch.cat([before[:, middle - CENTRE : middle], after, before[:, 1 : TRANSFORM - CENTRE - middle]], 1)

    def pulses(self, f0: Tensor, voicing: Tensor, phase: Tensor, last_f0: Tensor) -> tuple[Tensor, Tensor]:
        """The pulse train, and the phase after it.

        A row's phase is rounded to a multiple of 2^-24 turns, and summed in double precision: so it is exact, and passes
        through the float32 state unchanged. Sums in single precision drifted apart by 2.6e-3 between chunks and whole.
        """
        previous = torch.cat([last_f0, f0[:-1]]).unsqueeze(1)
        frequency = previous + (f0.unsqueeze(1) - previous) * self.ramp
        cycles = frequency / SAMPLE_RATE
        within = torch.cumsum(cycles, 1)
        row_cycles = to_phase_steps(within[:, -1])
        ends = torch.cumsum(row_cycles, 0) + to_phase_steps(phase)
        starts = ends - row_cycles
        turn = (starts - torch.floor(starts)).float().unsqueeze(1) + within
        # From -0.5 to 0.5: near the pulse, at 0, small numbers keep the quotient below exact.
        turn = turn - torch.floor(turn + 0.5)
        # 1 + 2 cos(x) + ... + 2 cos(K x) in closed form: all harmonics below the limit, and none above.
        harmonics = 2 * torch.floor(HIGHEST_HARMONIC_HZ / frequency) + 1
        divisor = torch.sin(np.pi * turn)
        near_zero = torch.abs(divisor) < 1e-6
        ratio = torch.sin(harmonics * np.pi * turn) / torch.where(near_zero, torch.ones_like(divisor), divisor)
        train = torch.where(near_zero, harmonics, ratio) * torch.sqrt(cycles) * voicing.unsqueeze(1)
        end = ends[-1:]
        return train.reshape(-1), (end - torch.floor(end)).float()

    def filter(self, cepstra: Tensor, warp: Tensor) -> tuple[Tensor, Tensor]:
        """The minimum-phase filter's response: a cepstrum is its logarithm, so cosines give magnitude and sines phase."""
        radians = torch.clamp(self.bin_radians * warp, max=ROLL_OFF_KHZ * 2000 * np.pi / TEACHER_RATE)
        mel = radians + 2 * torch.atan(ALL_PASS * torch.sin(radians) / (1 - ALL_PASS * torch.cos(radians)))
        basis = self.orders.unsqueeze(1) * mel.unsqueeze(0)
        level = GAIN * torch.exp(-ROLL_OFF * torch.relu(self.bin_khz * warp - ROLL_OFF_KHZ))
        magnitude = torch.exp(cepstra @ torch.cos(basis)) * level
        angle = cepstra @ torch.sin(basis)
        return magnitude * torch.cos(angle), magnitude * -torch.sin(angle)

    def forward(
        self,
        f0: Tensor,
        voicing: Tensor,
        cepstra: Tensor,
        aperiodicity: Tensor,
        phase: Tensor,
        last_f0: Tensor,
        excitation: Tensor,
        tail: Tensor,
        frame_index: Tensor,
        warp: Tensor,
    ) -> tuple[Tensor, ...]:
        rows = f0.shape[0]
        train, phase_out = self.pulses(f0, voicing, phase, last_f0)
        source = torch.cat([excitation, train])
        pulse_real, pulse_imaginary = self.spectrum(source, rows)
        noise_real, noise_imaginary = self.spectrum(self.noise, NOISE_ROWS)
        noise_rows = torch.remainder(frame_index + torch.arange(rows), NOISE_ROWS)

        voiced = (aperiodicity * voicing.unsqueeze(1)) @ self.bands
        unvoiced = 1 - voiced
        real = pulse_real * voiced + noise_real[noise_rows] * unvoiced
        imaginary = pulse_imaginary * voiced + noise_imaginary[noise_rows] * unvoiced
        filter_real, filter_imaginary = self.filter(cepstra, warp)
        spoken = self.signal(
            real * filter_real - imaginary * filter_imaginary, real * filter_imaginary + imaginary * filter_real
        )

        silence = torch.zeros_like(tail)
        mixed = torch.cat([tail, torch.zeros_like(train)])
        for piece in range(TRANSFORM // HOP):
            part = spoken[:, piece * HOP : (piece + 1) * HOP].reshape(-1)
            mixed = mixed + torch.cat([silence[: piece * HOP], part, silence[: TAIL - piece * HOP]])
        length = rows * HOP
        return mixed[:length], phase_out, f0[-1:], source[length:], mixed[length:], frame_index + rows


INPUTS = ["f0", "voicing", "cepstra", "aperiodicity", "phase", "lastF0", "excitation", "tail", "frameIndex", "warp"]
OUTPUTS = ["pcm", "phaseOut", "lastF0Out", "excitationOut", "tailOut", "frameIndexOut"]


def first_state() -> tuple[Tensor, ...]:
    """phase, lastF0, excitation, tail and frameIndex before the first row."""
    return torch.zeros(1), torch.full((1,), 120.0), torch.zeros(DELAY), torch.zeros(TAIL), torch.zeros(1, dtype=torch.int64)


def export_decoder(filters: np.ndarray, path: Path) -> None:
    rows = 48
    example = (torch.full((rows,), 150.0), torch.ones(rows), torch.zeros(rows, CEPSTRA), torch.full((rows, BANDS), 0.5))
    torch.onnx.export(
        Decoder(filters).eval(),
        (*example, *first_state(), torch.ones(1)),
        str(path),
        input_names=INPUTS,
        output_names=OUTPUTS,
        opset_version=15,
        do_constant_folding=False,  # the runtime folds; in the file the matrices would be 6 MB
        dynamic_axes={**{name: {0: "rows"} for name in INPUTS[:4]}, "pcm": {0: "samples"}},
    )


def decode(decoder: Decoder, rows: tuple[Tensor, ...], warp: float = 1.0) -> np.ndarray:
    """A whole utterance's samples, as the service would play them: without the delay, as long as its rows."""
    with torch.no_grad():
        pcm, _, _, _, tail, _ = decoder(*rows, *first_state(), torch.tensor([warp]))
    return torch.cat([pcm, tail])[DELAY : DELAY + len(pcm)].numpy()
