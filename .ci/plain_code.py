"""Check for expressions that are shorter than they are clear, torn docstrings, private imports; `make lint` runs it.

It reports a text or a list multiplied by a truth value, a slice that ends at a truth value, and an assignment (`:=`)
within a comprehension. An `if` does the same in a line more. In docstrings it reports a line that is indented
otherwise than its paragraph begins. Of imports it reports private names of libraries (ruff's SLF001 those elsewhere)
and modules that are no public interface of theirs.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
SECTION = re.compile(r"[A-Z][\w ]*:$")  # such as Args:, whose entries hang
LIST_ITEM = re.compile(r"([*-]|\d+[.)])\s")
INTERNAL = (
    "numba.core",
    "pandas.core",
    "torch_geometric.data.",
    "torch_geometric.nn.conv.",
    "torch_geometric.nn.dense.",
)
NO_PUBLIC_NAME = ("torch.utils._pytree", "_typeshed")  # containers that torch.export takes; types of Python's own stubs
PREDICATES = ("bool", "isinstance", "any", "all", "callable", "hasattr")


def is_truth_value(node: ast.AST) -> bool:
    """Return True for an expression that yields True or False by its form."""
    if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return True
    if isinstance(node, ast.BoolOp):
        return any(map(is_truth_value, node.values))
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PREDICATES


def is_phrase(node: ast.AST) -> bool:
    """Return True for a literal text of several words, which nobody would repeat."""
    texts = node.values if isinstance(node, ast.JoinedStr) else [node]
    values = [text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str)]
    return any(re.search(r"[a-z] \w|\w [a-z]|[,;] $", text) for text in values)


def torn_lines(docstring: str) -> Iterator[int]:
    """Yield the index of each line that is indented otherwise than its paragraph begins.

    Lines may be indented further in sections such as Args and in lists; formulas in brackets are left out.
    """
    section = formula = hanging = False
    margin: int | None = None  # of the paragraph; None before its first line
    for index, line in enumerate(docstring.splitlines()):
        text = line.lstrip()
        if not text:
            margin, hanging = None, False
            continue
        within_formula, formula = formula, (formula or r"\[" in text) and r"\]" not in text
        if within_formula:
            continue
        indent = len(line) - len(text)
        if margin is None:
            margin = indent
            section = (section and indent > 0) or bool(SECTION.match(line))
        hanging = hanging or bool(LIST_ITEM.match(text))
        if indent < margin or (indent > margin and not section and not hanging):
            yield index


def internal_modules(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the modules and names of libraries in an import that the libraries do not offer to others."""
    for alias in node.names:
        module = alias.name if isinstance(node, ast.Import) else node.module or ""
        parts = module.split(".") if isinstance(node, ast.Import) else [*module.split("."), alias.name]
        own = parts[0] in ("gtx", "experiments", "__future__") or module in NO_PUBLIC_NAME
        if not own and (module.startswith(INTERNAL) or any(part.startswith("_") for part in parts)):
            yield ".".join(parts)


def problems(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and description of everything that the check reports in a module."""
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and (docstring := ast.get_docstring(node)):
            for index in torn_lines(docstring):
                yield node.body[0].lineno + index, "a docstring's line is indented otherwise than its paragraph begins"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                literal = isinstance(one, (ast.List, ast.Tuple, ast.JoinedStr)) or (
                    isinstance(one, ast.Constant) and isinstance(one.value, str)
                )
                if (literal and is_truth_value(other)) or (is_phrase(one) and not isinstance(other, ast.Constant)):
                    yield node.lineno, "a text or list multiplied by a truth value"
        elif isinstance(node, ast.Slice):
            if any(end is not None and is_truth_value(end) for end in (node.lower, node.upper)):
                yield getattr(node, "lineno", 0), "a slice that ends at a truth value"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for name in internal_modules(node):
                yield node.lineno, f"{name} is no public name of its library"
        elif isinstance(node, COMPREHENSIONS):
            for inner in ast.walk(node):
                if isinstance(inner, ast.NamedExpr):
                    yield inner.lineno, "an assignment within a comprehension"


def main() -> int:
    """Check all Python files of gtx and experiments; return 1 if anything is reported."""
    root, found = Path(__file__).parents[1], 0
    for file in sorted(file for folder in ("gtx", "experiments") for file in (root / folder).rglob("*.py")):
        name = file.relative_to(root).as_posix()
        for line, problem in sorted(set(problems(ast.parse(file.read_text(encoding="utf-8"))))):
            print(f"{name}:{line}: {problem}")
            found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
