"""Where the official files of DisLib are, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass

from demix._support.errors import DemixError
from demix.papers.datasets.smallnorb import PARTS

_MPI3D = "https://storage.googleapis.com/disentanglement_dataset/Final_Dataset"
_NORB = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small"

# Part, kind, SHA-256 and bytes.
_NORB_FILES = (
    (0, "dat", "5ffd6272a07d32695ee1082a26a41a93a37aab8c28da047f8c34ed348d214873", 131_896_188),
    (0, "cat", "2784e542c1922060691090952b6cd6278879a216c90f81476f0f00256d42cdaa", 348),
    (0, "info", "de7eb932ebe7a4ee16217fead60660d0eb3d23632c2f4d1c51f88c501c17bf32", 71_052),
    (1, "dat", "cf7104eed3e51174d2f65b66d1e5878b9da233b886f161b0d88f4510ba2c7474", 130_799_817),
    (1, "cat", "ecaf6d5bb8c3bc5eab9cf0258f6d2198dd474e016e374836fc097f2e5ff509ff", 347),
    (1, "info", "16adf314226327ee006d1a44db8cfef52773c06c829951d5653a9f6f310248a2", 10_428),
)


@dataclass(frozen=True)
class OfficialFile:
    """A file, the address of its folder, and checksum and size in bytes where they are known."""

    name: str
    place: str
    checksum: str | None = None
    size: int | None = None


OFFICIAL: dict[str, tuple[OfficialFile, ...]] = {
    "dsprites": (
        OfficialFile(
            "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
            "https://github.com/google-deepmind/dsprites-dataset/raw/master",
            "md5:7da33b31b13a06f4b04a70402ce90c2e",
        ),
    ),
    "shapes3d": (
        OfficialFile(
            "3dshapes.h5",
            "https://storage.googleapis.com/3d-shapes",
            "sha256:0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785",
            267_573_662,
        ),
    ),
    "mpi3d_toy": (OfficialFile("mpi3d_toy.npz", _MPI3D, "md5:55889cb7c7dfc655d6e0277beee88868"),),
    "mpi3d_realistic": (OfficialFile("mpi3d_realistic.npz", _MPI3D),),
    "mpi3d_real": (OfficialFile("mpi3d_real.npz", _MPI3D),),
    "cars3d": (
        OfficialFile(
            "nips2015-analogy-data.tar.gz",
            "http://www.scottreed.info/files",
            "md5:4e866a7919c1beedf53964e6f7a23686",
        ),
    ),
    "smallnorb": tuple(
        OfficialFile(f"smallnorb-{PARTS[part]}-{kind}.mat.gz", _NORB, f"sha256:{digest}", size)
        for part, kind, digest, size in _NORB_FILES
    ),
}
"""The files of each data set, by its name."""


def official_files(name: str) -> tuple[OfficialFile, ...]:
    """Return the files of the data set called ``name``."""
    if name not in OFFICIAL:
        raise DemixError(f"Unknown data set {name!r}; known are {', '.join(OFFICIAL)}.")
    return OFFICIAL[name]
