"""Files of the network that are kept on this machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

from treadle.keras.config import keras_home

_BLOCK = 1 << 16


def _hash(path: Path, algorithm: str, expected: str) -> str:
    long = algorithm == "sha256" or (algorithm == "auto" and len(expected) == 64)
    hasher = hashlib.sha256() if long else hashlib.md5()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            hasher.update(block)
    return hasher.hexdigest()


def _fetch(origin: str, target: Path) -> None:
    """Copy what is at an address to a file, which is there as a whole or not at all."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    try:
        with os.fdopen(handle, "wb") as file, urllib.request.urlopen(origin) as source:
            shutil.copyfileobj(source, file, _BLOCK)
        os.replace(name, target)
    except urllib.error.URLError as error:
        reason = getattr(error, "reason", error)
        raise OSError(
            f"get_file: {origin} cannot be read: {reason}. Put the file at {target}"
        ) from error
    finally:
        Path(name).unlink(missing_ok=True)


def _unpacked(archive: Path, folder: Path, archive_format: Any) -> None:
    """The files of an archive in a folder.

    Raises:
        ValueError: it is no archive of a kind that was named.
    """
    kinds = ["tar", "zip"] if archive_format == "auto" else archive_format
    kinds = [kinds] if isinstance(kinds, str) else kinds or []
    if "tar" in kinds and tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    elif "zip" in kinds and zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)
    else:
        raise ValueError(f"get_file: {archive} is no archive of the kinds {kinds}")


def get_file(
    fname: Any = None, origin: str | None = None, untar: bool = False,
    md5_hash: str | None = None, file_hash: str | None = None, cache_subdir: str = "datasets",
    hash_algorithm: str = "auto", extract: bool = False, archive_format: Any = "auto",
    cache_dir: Any = None, force_download: bool = False,
) -> str:  # fmt: skip
    """The path of a file that is fetched the first time, and its archive's folder where it is
    unpacked.

    Args:
        fname: its name here; that of the address when omitted.
        origin: the address, such as ``https://...`` or ``file:///...``.
        untar: unpack a tar archive.
        md5_hash, file_hash: what the file must have as its MD5 or SHA-256.
        cache_subdir: the folder in `cache_dir`.
        hash_algorithm: "auto", "sha256" or "md5".
        extract: unpack an archive.
        archive_format: "auto", "tar", "zip" or a list of these.
        cache_dir: ``~/.keras`` when omitted.
        force_download: fetch it again.

    Raises:
        ValueError: no address is given, or the file has another hash.
        OSError: it cannot be read.
    """
    if origin is None:
        raise ValueError('Please specify the "origin" argument (URL of the file to download).')
    if md5_hash is not None and file_hash is None:
        file_hash, hash_algorithm = md5_hash, "md5"
    name = os.fspath(fname) if fname else os.path.basename(urllib.parse.urlsplit(origin).path)
    if not name:
        raise ValueError(
            f"Can't parse the file name from the origin provided: '{origin}'. Please specify the "
            "`fname` argument."
        )
    if os.sep in name:
        raise ValueError(
            "Paths are no longer accepted as the `fname` argument. To specify the file's parent "
            f"directory, use the `cache_dir` argument. Received: fname={name}"
        )
    folder = Path(cache_dir or keras_home()).expanduser() / cache_subdir
    folder.mkdir(parents=True, exist_ok=True)
    unpack = extract or untar
    target, place = folder / name, folder / name
    if unpack and fname and "." in name:
        place = folder / f"{name[: name.find('.')]}_extracted"
    elif unpack:
        target = folder / f"{name}_archive"
    known = target.exists() and not force_download
    if known and file_hash is not None and _hash(target, hash_algorithm, file_hash) != file_hash:
        print(f"{target} has another hash than {file_hash}: it is fetched again")
        known = False
    if not known:
        print(f"Downloading data from {origin}")
        _fetch(origin, target)
        if file_hash is not None and _hash(target, hash_algorithm, file_hash) != file_hash:
            target.unlink()
            raise ValueError(
                f"Incomplete or corrupted file detected. The {hash_algorithm} file hash does not "
                f"match the provided value of {file_hash}."
            )
    if unpack:
        _unpacked(target, place, "tar" if untar else archive_format)
        return str(place)
    return str(target)
