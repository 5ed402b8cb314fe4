"""WAV files. The bytes, samples and refusals are TensorFlow 2.21's."""

import numpy as np
import pytest

import treadle as td

SOUND = np.float32([[0.0], [0.5], [-1.0], [1.0], [2.0], [0.1]])
FILE = (
    b"RIFF0\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00\x80>\x00\x00\x02\x00"
    b"\x10\x00data\x0c\x00\x00\x00\x00\x00\x00@\x00\x80\xff\x7f\xff\x7f\xcd\x0c"
)
SAMPLES = np.float32([0.0, 0.5, -1.0, 0.9999695, 0.9999695, 0.1000061])[:, None]


def test_files_are_written_and_read():
    assert td.audio.encode_wav(SOUND, 8000).numpy() == FILE
    assert td.function(td.audio.encode_wav)(SOUND, 8000).numpy() == FILE
    for decode in (td.audio.decode_wav, td.function(td.audio.decode_wav)):
        audio, rate = decode(td.constant(FILE))
        assert int(rate) == 8000 and rate.dtype is td.int32
        np.testing.assert_allclose(audio, SAMPLES, rtol=1e-6)


def test_channels_and_samples_are_as_desired():
    audio = td.audio.decode_wav(FILE, desired_channels=2, desired_samples=8).audio
    np.testing.assert_allclose(audio[:6], np.repeat(SAMPLES, 2, 1), rtol=1e-6)
    assert audio.shape == (8, 2) and not audio[6:].numpy().any()
    np.testing.assert_allclose(
        td.audio.decode_wav(FILE, desired_samples=2).audio, SAMPLES[:2], rtol=1e-6
    )


def test_what_is_refused():
    refused = td.errors.InvalidArgumentError
    with pytest.raises(refused, match="too short|no WAV file"):
        td.audio.decode_wav(FILE[:20])
    with pytest.raises(refused, match="no WAV file"):
        td.audio.decode_wav(b"RIFX" + FILE[4:])
    with pytest.raises(refused, match="must be 2-dimensional"):
        td.audio.encode_wav([0.0], 8000)
    with pytest.raises(refused, match="scalar"):
        td.audio.decode_wav([FILE])
    with pytest.raises(refused, match="0 Hz"):
        td.audio.encode_wav(SOUND, 0)
