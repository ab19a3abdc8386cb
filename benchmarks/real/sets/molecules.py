"""Molecular dynamics (openmm): what is seen are aligned coordinates, factors are torsions."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from benchmarks.real.task import Dataset, Task, angles

_SEED = 1
_STEP, _HYDROGEN = 0.004, 3.0  # picoseconds, which take heavier hydrogens than there are


def pentane() -> Task:
    """Five beads on a string, of a united-atom force field for alkanes, in a heat bath of 350 K."""
    return _alkane(5, n_latents=4, rows=6000)


def butane() -> Task:
    """Four such beads."""
    return _alkane(4, n_latents=2, rows=4000)


def _alkane(beads: int, *, n_latents: int, rows: int) -> Task:
    import openmm
    from openmm import unit

    system = openmm.System()
    bonds, bends = openmm.HarmonicBondForce(), openmm.HarmonicAngleForce()
    turns, contacts = openmm.PeriodicTorsionForce(), openmm.NonbondedForce()
    for i in range(beads):
        mass, size, depth = (
            (15.035, 0.375, 0.815) if i in (0, beads - 1) else (14.027, 0.395, 0.382)
        )
        system.addParticle(mass)
        contacts.addParticle(0.0, size, depth)
    for i in range(beads - 1):
        bonds.addBond(i, i + 1, 0.154, 2.0e5)
    for i in range(beads - 2):
        bends.addAngle(i, i + 1, i + 2, np.deg2rad(114.0), 519.6)
    quads = [(i, i + 1, i + 2, i + 3) for i in range(beads - 3)]
    for quad in quads:
        for times, phase, height in ((1, 0.0, 2.952), (2, np.pi, -0.567), (3, 0.0, 6.579)):
            turns.addTorsion(*quad, times, phase, height)
    for i, j in combinations(range(beads), 2):
        if j - i < 4:
            contacts.addException(i, j, 0.0, 1.0, 0.0)
    for force in (bonds, bends, turns, contacts):
        system.addForce(force)
    zigzag = np.array([[0.128 * i, 0.084 * (i % 2), 0.0] for i in range(beads)])
    frames = _frames(system, zigzag * unit.nanometer, 350, steps=125, rows=rows)
    return Task(_aligned(frames), {"torsions": angles(_torsions(frames, quads))}, n_latents)


def dialanine() -> Task:
    """Two alanines between caps, in implicit water of 400 K, of openmm's own force-field files."""
    from openmm import app, unit

    pdb = app.PDBFile(StringIO(_capped_alanines()))
    field = app.ForceField("amber14-all.xml", "implicit/obc2.xml")
    model = app.Modeller(pdb.topology, pdb.positions)
    model.addHydrogens(field)
    system = field.createSystem(
        model.topology,
        nonbondedMethod=app.NoCutoff,
        constraints=app.HBonds,
        hydrogenMass=_HYDROGEN,
    )
    heavy = [a.index for a in model.topology.atoms() if a.element.symbol != "H"]
    place = {
        (atom.residue.index, atom.name): heavy.index(atom.index)
        for atom in model.topology.atoms()
        if atom.index in heavy
    }
    frames = _frames(system, model.positions.in_units_of(unit.nanometer), 400, steps=60, rows=6000)
    quads = []
    for i in (1, 2):
        quads.append((place[i - 1, "C"], place[i, "N"], place[i, "CA"], place[i, "C"]))
        quads.append((place[i, "N"], place[i, "CA"], place[i, "C"], place[i + 1, "N"]))
    frames = frames[:, heavy]
    return Task(_aligned(frames), {"torsions": angles(_torsions(frames, quads))}, 6, lag=2)


def _frames(system: Any, start: Any, kelvin: float, *, steps: int, rows: int) -> np.ndarray:
    """Return positions ``(rows, atoms, 3)``, one every so many steps."""
    import openmm
    from openmm import unit

    bath = openmm.LangevinMiddleIntegrator(kelvin * unit.kelvin, 1 / unit.picosecond, _STEP)
    bath.setRandomNumberSeed(_SEED)
    platform = openmm.Platform.getPlatformByName("CPU" if len(start) > 8 else "Reference")
    own = {"Threads": "1"} if platform.getName() == "CPU" else {}
    context = openmm.Context(system, bath, platform, own)
    context.setPositions(start)
    openmm.LocalEnergyMinimizer.minimize(context)
    context.setVelocitiesToTemperature(kelvin * unit.kelvin, _SEED)
    bath.step(20 * steps)
    frames = []
    for _ in range(rows):
        bath.step(steps)
        positions = context.getState(getPositions=True).getPositions(asNumpy=True)
        frames.append(positions.value_in_unit(unit.nanometer))
    return np.array(frames)


def _aligned(frames: np.ndarray) -> np.ndarray:
    """Return frames moved and turned onto the first one, as rows."""
    frames = frames - frames.mean(axis=1, keepdims=True)
    u, _, vt = np.linalg.svd(frames.transpose(0, 2, 1) @ frames[0])
    u[:, :, -1] *= np.linalg.det(u @ vt)[:, None]  # no reflection
    return (frames @ (u @ vt)).reshape(len(frames), -1).astype(np.float32)


def _torsions(frames: np.ndarray, quads: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return the torsion ``(N, k)`` of each four atoms."""
    found = []
    for quad in quads:
        a, b, c = (frames[:, j] - frames[:, i] for i, j in pairwise(quad))
        n, m = np.cross(a, b), np.cross(b, c)
        sine = (np.linalg.norm(b, axis=1, keepdims=True) * a * m).sum(axis=1)
        found.append(np.arctan2(sine, (n * m).sum(axis=1)))
    return np.stack(found, axis=1)


# Each atom is placed by three earlier ones: distance in angstrom, angle and torsion in degrees.
_ATOMS = (
    ("CH3", "ACE", 1, None),
    ("C", "ACE", 1, None),
    ("N", "ALA", 2, None),
    ("O", "ACE", 1, (2, 0, 1, 1.23, 121, 180)),
    ("CA", "ALA", 2, (0, 1, 2, 1.46, 122, 180)),
    ("C", "ALA", 2, (1, 2, 4, 1.52, 111, -80)),
    ("CB", "ALA", 2, (1, 2, 4, 1.53, 110, 158)),
    ("N", "ALA", 3, (2, 4, 5, 1.33, 117, 140)),
    ("O", "ALA", 2, (7, 4, 5, 1.23, 121, 180)),
    ("CA", "ALA", 3, (4, 5, 7, 1.46, 122, 180)),
    ("C", "ALA", 3, (5, 7, 9, 1.52, 111, -80)),
    ("CB", "ALA", 3, (5, 7, 9, 1.53, 110, 158)),
    ("N", "NME", 4, (7, 9, 10, 1.33, 117, 140)),
    ("O", "ALA", 3, (12, 9, 10, 1.23, 121, 180)),
    ("C", "NME", 4, (9, 10, 12, 1.46, 122, 180)),
)


def _capped_alanines() -> str:
    """Return the heavy atoms of two alanines between caps as lines of a PDB file."""
    places = [np.zeros(3), np.array([1.52, 0, 0]), np.array([2.1, 1.2, 0])]
    for _, _, _, how in _ATOMS[3:]:
        a, b, c, length, angle, torsion = how
        along = _unit(places[c] - places[b])
        across = _unit(np.cross(places[b] - places[a], along))
        angle, torsion = np.deg2rad(180 - angle), np.deg2rad(torsion)
        turned = np.cos(torsion) * np.cross(across, along) + np.sin(torsion) * across
        places.append(places[c] + length * (np.cos(angle) * along + np.sin(angle) * turned))
    order = sorted(range(len(_ATOMS)), key=lambda number: _ATOMS[number][2])
    lines = []
    for serial, number in enumerate(order, start=1):
        name, residue, which, _ = _ATOMS[number]
        x, y, z = places[number]
        lines.append(
            f"ATOM  {serial:5d}  {name:<3s} {residue} A{which:4d}    {x:8.3f}{y:8.3f}{z:8.3f}"
            f"  1.00  0.00           {name[0]}"
        )
    return "\n".join([*lines, "TER", "END", ""])


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


SETS = (
    Dataset("pentane", "series", "five beads, aligned coordinates; two torsions", pentane),
    Dataset("dialanine", "series", "a peptide, aligned heavy atoms; four torsions", dialanine),
)
OTHERS = (Dataset("butane", "series", "four beads, aligned coordinates; a torsion", butane),)
