"""The trampoline's LLVM text, in the order in which a call passes through it.

    entry -> checks -> outputs -> program -> results
                |          |         |
                |          +-------- failure
                +-> portable

The parts up to `portable` are blocks of one function; names in dollars are filled in by
`dispatch.trampoline`.
"""
