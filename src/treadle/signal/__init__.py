"""``td.signal``: Fourier and cosine transforms, frames, windows and spectra."""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.signal.frames import frame, overlap_and_add
from treadle.signal.mdct import inverse_mdct, mdct
from treadle.signal.mel import linear_to_mel_weight_matrix, mfccs_from_log_mel_spectrograms
from treadle.signal.spectra import dct, idct, inverse_stft, inverse_stft_window_fn, stft
from treadle.signal.transforms import (
    fft,
    fft2d,
    fft3d,
    fftnd,
    fftshift,
    ifft,
    ifft2d,
    ifft3d,
    ifftnd,
    ifftshift,
    irfft,
    irfft2d,
    irfft3d,
    irfftnd,
    rfft,
    rfft2d,
    rfft3d,
    rfftnd,
)
from treadle.signal.windows import (
    hamming_window,
    hann_window,
    kaiser_bessel_derived_window,
    kaiser_window,
    vorbis_window,
)

__all__ = [
    "dct",
    "fft",
    "fft2d",
    "fft3d",
    "fftnd",
    "fftshift",
    "frame",
    "hamming_window",
    "hann_window",
    "idct",
    "ifft",
    "ifft2d",
    "ifft3d",
    "ifftnd",
    "ifftshift",
    "inverse_mdct",
    "inverse_stft",
    "inverse_stft_window_fn",
    "irfft",
    "irfft2d",
    "irfft3d",
    "irfftnd",
    "kaiser_bessel_derived_window",
    "kaiser_window",
    "linear_to_mel_weight_matrix",
    "mdct",
    "mfccs_from_log_mel_spectrograms",
    "overlap_and_add",
    "rfft",
    "rfft2d",
    "rfft3d",
    "rfftnd",
    "stft",
    "vorbis_window",
]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
