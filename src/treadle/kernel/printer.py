"""Kernels as readable text, and the hash of a kernel's structure."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from treadle.core.digests import digest
from treadle.core.shapes import Dim, SymbolicDim, substitute
from treadle.kernel.ir import (
    Affine,
    Apply,
    Axis,
    Buffer,
    Const,
    Expr,
    Extent,
    Index,
    Iota,
    Kernel,
    Load,
    Node,
    Reduce,
    Scan,
    Store,
    postorder,
)  # fmt: skip

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
}  # fmt: skip
KINDS = ("segmented", "streaming", "few", "blocked")


def kernel_text(kernel: Kernel) -> str:
    """The kernel as text: parameters, axes, one line a shared value, one line a store."""
    return _Printer(kernel).text("kernel")


def kernel_hash(kernel: Kernel) -> str:
    """A hash of the structure that does not depend on the names of axes, buffers or symbols."""
    found = _hashes.get(kernel)
    if found is None:
        text = _Printer(kernel, anonymous=True).text("k")
        found = _hashes[kernel] = digest(text, 24)
    return found


_hashes: weakref.WeakKeyDictionary[Kernel, str] = weakref.WeakKeyDictionary()


def node_text(node: Node) -> str:
    """One node as text, for error messages."""
    if isinstance(node, Kernel):
        return kernel_text(node)
    if isinstance(node, Axis):
        return f"{node.name}<{node.extent}"
    if isinstance(node, Buffer):
        return f"{node.name}: {node.dtype.short}[{', '.join(map(str, node.shape))}]"
    if isinstance(node, Affine):
        return _affine_text(node, lambda a: a.name, str)
    return _Printer(None).inline(node)


Node.text = node_text


def _affine_text(index: Affine, axis: Callable[[Axis], str], dim: Callable[[Dim], str]) -> str:
    parts = [axis(a) if c == 1 else f"{axis(a)}*{_wrap(c, dim)}" for a, c in index.terms]
    if index.offset != 0 or not parts:
        parts.append(dim(index.offset))
    return " + ".join(parts)


def _wrap(dim: Dim, text: Callable[[Dim], str]) -> str:
    return text(dim) if isinstance(dim, int) else f"({text(dim)})"


class _Printer:
    def __init__(self, kernel: Kernel | None, anonymous: bool = False) -> None:
        self.kernel = kernel
        self.anonymous = anonymous
        self.names: dict[Node, str] = {}
        self.shared: dict[Expr, str] = {}
        self.symbols: dict[str, SymbolicDim] = {}
        self.taken: set[str] = set()
        if kernel and anonymous:
            self.names |= {a: f"a{n}" for n, a in enumerate(kernel.axes)}
            self.names |= {b: f"b{n}" for n, b in enumerate(kernel.buffers)}
            fresh = [SymbolicDim.symbol(f"s{n}") for n in range(len(kernel.symbols))]
            self.symbols = dict(zip(kernel.symbols, fresh, strict=True))

    def text(self, title: str) -> str:
        assert self.kernel is not None
        kernel = self.kernel
        parameters = ", ".join(
            f"{self.name(b)}: {b.dtype.short}[{', '.join(map(self.dim, b.shape))}]"
            for b in kernel.buffers
        )
        axes = ", ".join(f"{self.name(a)}<{self.dim(a.extent)}" for a in kernel.axes)
        head = "".join(f"{kind} " for kind in KINDS if getattr(kernel, kind))
        body = [f"{head}{title}({parameters}) for {axes or 'one point'} {{"]
        body += self.definitions(kernel.roots)
        body += [f"  {self.store(s)}" for s in kernel.stores]
        return "\n".join([*body, "}"])

    def definitions(self, roots: list[Expr]) -> list[str]:
        """One line for each value used more than once, and for each reduction and scan."""
        order = postorder(roots)
        uses: dict[Expr, int] = {}
        for expr in order:
            for child in expr.children:
                uses[child] = uses.get(child, 0) + 1
        for root in roots:
            uses[root] = uses.get(root, 0) + 1
        lines = []
        for expr in order:
            simple = isinstance(expr, Const | Iota | Extent)
            # A deep chain is cut so that printing never recurses far.
            whole = isinstance(expr, Reduce | Scan)
            if not simple and (uses[expr] > 1 or whole or self.depth(expr) > 8):
                text = self.inline(expr)
                self.shared[expr] = self.fresh()
                lines.append(f"  {self.shared[expr]}: {expr.dtype.short} = {text}")
        return lines

    def fresh(self) -> str:
        """The name of a shared value: no axis, buffer or symbol has it."""
        assert self.kernel is not None
        if not self.taken:
            axes = {self.name(a) for a in self.kernel.axes}
            self.taken = axes | {self.name(b) for b in self.kernel.buffers}
            self.taken.update(self.kernel.symbols)
        name = f"v{len(self.shared)}"
        while name in self.taken:
            name += "_"
        return name

    def depth(self, expr: Expr, limit: int = 9) -> int:
        if expr in self.shared or not expr.children or not limit:
            return 0
        return 1 + max(self.depth(c, limit - 1) for c in expr.children)

    def name(self, node: Axis | Buffer) -> str:
        return self.names.get(node, node.name)

    def dim(self, dim: Dim) -> str:
        return str(substitute(dim, self.symbols)) if self.symbols else str(dim)

    def index(self, index: Index) -> str:
        if isinstance(index, Expr):
            return self.inline(index)
        return _affine_text(index, self.name, self.dim)

    def place(self, buffer: Buffer, index: tuple[Index, ...]) -> str:
        return f"{self.name(buffer)}[{', '.join(map(self.index, index))}]"

    def store(self, store: Store) -> str:
        words = [*(["unique"] if store.unique else []), store.combine + "="]
        kind = " ".join(words).replace("set=", "=")
        return f"{self.place(store.buffer, store.index)} {kind} {self.inline(store.value)}"

    def inline(self, node: Node) -> str:
        if isinstance(node, Expr) and node in self.shared:
            return self.shared[node]
        match node:
            case Const():
                unequal = node.value != node.value
                value = f"bits(0x{node.bits.hex()})" if unequal or node.dtype.is_complex else None
                return f"{value or node.value}:{node.dtype.short}"
            case Iota():
                return f"iota({self.name(node.axis)}):{node.dtype.short}"
            case Extent():
                return f"dim({self.dim(node.dim)}):{node.dtype.short}"
            case Load():
                return self.load(node)
            case Apply():
                return self.call(node)
            case Reduce():
                axes = ", ".join(map(self.name, node.over))
                kind = f":{node.dtype.short}" if node.op in ("argmax", "argmin") else ""
                return f"{node.op}{kind}[{axes}]({self.inline(node.value)})"
            case Scan():
                kinds = ("exclusive", "reverse")
                words = "".join(f" {kind}" for kind in kinds if getattr(node, kind))
                return f"scan {node.op}{words}[{self.name(node.axis)}]({self.inline(node.value)})"
            case Store():
                return self.store(node)
        raise TypeError(f"no text for {type(node).__name__}")

    def load(self, node: Load) -> str:
        place = self.place(node.buffer, node.index)
        if node.valid is None or node.fill is None:
            return place
        return f"({place} if {self.inline(node.valid)} else {self.inline(node.fill)})"

    def call(self, node: Apply) -> str:
        args = [self.inline(a) for a in node.args]
        if node.fn in INFIX:
            return f"({args[0]} {INFIX[node.fn]} {args[1]})"
        name = f"cast<{node.dtype.short}>" if node.fn == "cast" else node.fn
        return f"{name}({', '.join(args)})"
